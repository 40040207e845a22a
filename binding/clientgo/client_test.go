package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

func managed[T metav1.Object](object T) T {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1"}})
	return object
}

func TestClientAsksTheServer(t *testing.T) {
	server := newServer(t, managed(bindingtest.Volume("disk", "10Gi")), managed(bindingtest.Claim("default", "data", "5Gi")),
		bindingtest.Pod("default", "web", "node", "data"), bindingtest.Pod("other", "web", "node", "data"))
	client := &clientgo.Client{Clientset: clientset(t, server)}
	ctx := t.Context()

	volume, err := client.GetVolume(ctx, "disk")
	require.NoError(t, err)
	assert.Equal(t, "disk", volume.Name)
	assert.Nil(t, volume.ManagedFields)
	volume.Annotations = map[string]string{"a": "b"}
	stale := volume.DeepCopy()
	volume, err = client.UpdateVolume(ctx, volume)
	require.NoError(t, err)
	assert.Equal(t, "b", server.Volume("disk").Annotations["a"])
	volume.Status.Phase = corev1.VolumeAvailable
	_, err = client.UpdateVolumeStatus(ctx, volume)
	require.NoError(t, err, "B5 what an update returns can be written on")
	assert.Equal(t, corev1.VolumeAvailable, server.Volume("disk").Status.Phase)
	none, err := client.UpdateVolume(ctx, stale)
	assert.True(t, apierrors.IsConflict(err), "B5 %v", err)
	assert.Nil(t, none)

	claim, err := client.GetClaim(ctx, "default", "data")
	require.NoError(t, err)
	assert.Nil(t, claim.ManagedFields)
	claim.Spec.VolumeName = "disk"
	claim, err = client.UpdateClaim(ctx, claim)
	require.NoError(t, err)
	claim.Status.Phase = corev1.ClaimLost
	_, err = client.UpdateClaimStatus(ctx, claim)
	require.NoError(t, err)
	assert.Equal(t, "disk", server.Claim("default", "data").Spec.VolumeName)
	assert.Equal(t, corev1.ClaimLost, server.Claim("default", "data").Status.Phase)

	claims, err := client.ListClaims(ctx)
	require.NoError(t, err)
	require.Len(t, claims, 1)
	assert.Equal(t, "data", claims[0].Name)

	pods, err := client.ListPods(ctx, "default")
	require.NoError(t, err)
	require.Len(t, pods, 1)
	assert.Equal(t, "web", pods[0].Name)
}

func TestClientCreatesAndDeletes(t *testing.T) {
	server := newServer(t)
	client := &clientgo.Client{Clientset: clientset(t, server)}
	volume, err := client.CreateVolume(t.Context(), bindingtest.Volume("disk", "10Gi"))
	require.NoError(t, err)
	_, err = client.CreateVolume(t.Context(), bindingtest.Volume("disk", "10Gi"))
	assert.True(t, apierrors.IsAlreadyExists(err), "P2 %v", err)

	other := "1000"
	err = client.DeleteVolume(t.Context(), "disk", metav1.Preconditions{UID: &volume.UID, ResourceVersion: &other})
	assert.True(t, apierrors.IsConflict(err), "R3 another version: %v", err)
	require.NoError(t, client.DeleteVolume(t.Context(), "disk", metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}))
	assert.NotNil(t, server.Volume("disk").DeletionTimestamp)
	_, err = client.GetVolume(t.Context(), "none")
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestClientGivesUpAfterItsTimeout(t *testing.T) {
	server := newPair(t)
	gate := newGate()
	defer close(gate.let)
	server.Client.Use(gate.hook)
	client := &clientgo.Client{Clientset: clientset(t, server), Timeout: time.Millisecond}
	_, err := client.UpdateVolume(t.Context(), server.Volume("disk"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestClientOfARequestThatIsForbidden(t *testing.T) {
	server := newPair(t)
	server.Deny(func(apitest.Request) bool { return true })
	client := &clientgo.Client{Clientset: clientset(t, server)}
	_, err := client.ListPods(t.Context(), "default")
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestEventsOfTheRecorder(t *testing.T) {
	server := newServer(t)
	recorder := clientgo.StartRecorder(t.Context(), clientset(t, server))
	on := map[string]decision.Event{
		"PersistentVolume":      {On: obj.VolumeKey("disk"), UID: "uid-1", Type: "Warning", Reason: decision.EventVolumeMismatch, Message: "too small"},
		"PersistentVolumeClaim": {On: obj.ClaimKey("shop", "data"), UID: "uid-2", Type: "Normal", Reason: decision.EventFailedBinding, Message: "none"},
	}
	for _, event := range on {
		recorder.Record(event)
	}
	require.Eventually(t, func() bool { return len(server.Published()) == 2 }, patience, time.Millisecond)
	for _, published := range server.Published() {
		want := on[published.InvolvedObject.Kind]
		assert.Equal(t, corev1.EventSource{Component: "persistentvolume-controller"}, published.Source, "N")
		assert.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: string(want.On.Kind), Namespace: want.On.Namespace, Name: want.On.Name, UID: want.UID}, published.InvolvedObject)
		assert.Equal(t, [3]string{want.Type, string(want.Reason), want.Message}, [3]string{published.Type, published.Reason, published.Message})
	}
}
