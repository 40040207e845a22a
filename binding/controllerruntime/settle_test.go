package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/hooks"
)

// What a test of one's own may look like.
func TestPodGetsItsVolume(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi")).Build()
	// The code under test makes a claim, and a pod that uses it.
	require.NoError(t, c.Create(t.Context(), bindingtest.Claim("default", "data", "5Gi")))
	require.NoError(t, c.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data")))
	controllerruntime.MustBind(t, c)

	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "data"}, claim))
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(t, "disk", claim.Spec.VolumeName)
}

func get[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

func settle(t *testing.T, c client.Client) bindingtest.Outcome {
	t.Helper()
	outcome, err := controllerruntime.Settle(t.Context(), c, bindingtest.SettleOptions{})
	require.NoError(t, err)
	return outcome
}

func claimOf(t *testing.T, c client.Client) *corev1.PersistentVolumeClaim {
	t.Helper()
	return get(t, c, bindingtest.Claim("default", "data", "5Gi"))
}

func volumeOf(t *testing.T, c client.Client) *corev1.PersistentVolume {
	t.Helper()
	return get(t, c, bindingtest.Volume("disk", "10Gi"))
}

func TestSettleFollowsALife(t *testing.T) {
	ctx := t.Context()
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Pod("default", "web", "node", "data")).Build()
	settle(t, c)
	claim := claimOf(t, c)
	assert.Contains(t, claim.Finalizers, "kubernetes.io/pvc-protection", "F1")
	assert.Equal(t, claim.UID, volumeOf(t, c).Spec.ClaimRef.UID)
	version := claim.ResourceVersion
	settle(t, c)
	assert.Equal(t, version, claimOf(t, c).ResourceVersion, "X8 a second time writes nothing")

	require.NoError(t, c.Delete(ctx, claim))
	settle(t, c)
	assert.NotNil(t, claimOf(t, c).DeletionTimestamp, "F2 the pod uses it")

	require.NoError(t, c.Delete(ctx, bindingtest.Pod("default", "web", "node")))
	settle(t, c)
	require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)))
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase, "V3 the claim is gone")

	require.NoError(t, c.Create(ctx, bindingtest.Claim("default", "data", "5Gi")))
	settle(t, c)
	assert.Empty(t, claimOf(t, c).Spec.VolumeName, "X3 another claim of that name does not inherit the volume")
}

// In a fake client each object counts its versions anew: they do not tell that the second claim came later.
func TestV3SettleAfterAClaimCameAgain(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")).Build()
	settle(t, c)
	claim := claimOf(t, c)
	claim.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), claim))
	require.NoError(t, c.Delete(t.Context(), claim))
	require.NoError(t, c.Create(t.Context(), bindingtest.Claim("default", "data", "5Gi")))
	settle(t, c)
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase)
}

func TestSettleTellsWhatFailed(t *testing.T) {
	bad := bindingtest.Volume("bad", "-1Gi")
	broken := errors.New("the connection is broken")
	c := fake.NewClientBuilder().WithObjects(bad, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Volume("other", "20Gi"), bindingtest.Claim("default", "stuck", "20Gi")).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				if object.GetName() == "other" && object.GetUID() != "" && object.(*corev1.PersistentVolume).Spec.ClaimRef != nil {
					return broken
				}
				return c.Update(ctx, object, options...)
			},
		}).Build()
	_, err := controllerruntime.Settle(t.Context(), c, bindingtest.SettleOptions{})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "pv/bad: spec.capacity[storage]")
	assert.Equal(t, corev1.ClaimBound, claimOf(t, c).Status.Phase, "X7 the rest goes on")
}

func TestSettleNamesAMalformedObjectOnce(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil })).Build()
	_, err := controllerruntime.Settle(t.Context(), c, bindingtest.SettleOptions{})
	assert.EqualError(t, err, "pv/disk: spec.capacity[storage]: is missing")
}

func TestSettleWithHooks(t *testing.T) {
	class := bindingtest.Class("ours")
	class.Provisioner = "example.com/ours"
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.Spec.StorageClassName = &class.Name
	ours := &provisioner{}
	c := fake.NewClientBuilder().WithObjects(class, claim).Build()
	options := bindingtest.SettleOptions{Hooks: hooks.Set{Provisioners: map[string]hooks.Provisioner{class.Provisioner: ours}}}
	outcome, err := controllerruntime.Settle(t.Context(), c, options)
	require.NoError(t, errors.Join(err, outcome.Err()))
	bound := claimOf(t, c)
	assert.Equal(t, "pvc-"+string(bound.UID), bound.Spec.VolumeName, "P2")
	assert.Equal(t, corev1.ClaimBound, bound.Status.Phase)
}

func TestSettleReclaimsWhatIsDetached(t *testing.T) {
	storage := bindingtest.NewStorage()
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	storage.Add(disk)
	attachment := bindingtest.Attachment("disk", "n1")
	c := fake.NewClientBuilder().WithObjects(disk, bindingtest.Claim("default", "data", "5Gi"), attachment).Build()
	options := bindingtest.SettleOptions{Hooks: storage.Hooks("example.com/ours", "hostPath")}
	settleWith := func() {
		_, err := controllerruntime.Settle(t.Context(), c, options)
		require.NoError(t, err)
	}
	settleWith()
	require.NoError(t, c.Delete(t.Context(), claimOf(t, c)))
	settleWith()
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase)
	assert.Len(t, storage.Kept(), 1, "R3 it is attached")

	require.NoError(t, c.Delete(t.Context(), attachment))
	settleWith()
	assert.Empty(t, storage.Kept())
}

func TestSettleOfWhatCannotBe(t *testing.T) {
	_, err := controllerruntime.Settle(t.Context(), nil, bindingtest.SettleOptions{})
	require.EqualError(t, err, "controllerruntime.Settle: no client")
	refused := controllerruntime.Reconciler{Pods: clientgo.PodsIgnored}
	require.EqualError(t, refused.SetupWithManager(nil), "controllerruntime.Reconciler: protection depends on pods, and Pods is Ignored")
}

func TestSettleObeysTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi")).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			defer cancel()
			return c.Update(ctx, object, options...)
		},
	}).Build()
	_, err := controllerruntime.Settle(ctx, c, bindingtest.SettleOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// provisioner fails as often as it says.
type provisioner struct {
	failures int
	asked    int
}

func (p *provisioner) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	if p.asked++; p.asked <= p.failures {
		return nil, errors.New("the storage is busy")
	}
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt/" + request.Volume.Name}
	return request.Volume, nil
}

// A scheme that lacks a kind is named, and what to do about it.
func TestSettleNeedsAScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	settleOn := func() error {
		_, err := controllerruntime.Settle(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), bindingtest.SettleOptions{})
		return err
	}
	require.NoError(t, corev1.AddToScheme(scheme))
	require.ErrorContains(t, settleOn(), ": add storagev1.AddToScheme to the client's scheme")
	scheme = runtime.NewScheme()
	require.NoError(t, storagev1.AddToScheme(scheme))
	require.ErrorContains(t, settleOn(), ": add corev1.AddToScheme to the client's scheme")
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, settleOn())
}

// fakeTest is a *testing.T that says what it failed with.
type fakeTest struct {
	*testing.T
	failed string
}

func (f *fakeTest) Fatalf(format string, a ...any) { f.failed = fmt.Sprintf(format, a...) }

func TestMustBindFailsTheTest(t *testing.T) {
	class := "absent"
	c := fake.NewClientBuilder().WithObjects(bindingtest.Claim("default", "data", "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &class })).Build()
	inner := &fakeTest{T: t}
	controllerruntime.MustBind(inner, c)
	assert.Equal(t, `not everything is bound:
pvc/default/data: no volume fits, and the storage class "absent" that could provision one does not exist: 0/0 volumes fit: there are none`, inner.failed)
	assert.Equal(t, corev1.ClaimPending, claimOf(t, c).Status.Phase)
}

// A server that refuses to place a pod is not asked to let an update do it.
func TestAPodIsPlacedByItsBinding(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("not you"))
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Pod("default", "web", "", "data"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceCreate: func(_ context.Context, _ client.Client, name string, pod, binding client.Object, _ ...client.SubResourceCreateOption) error {
				assert.Equal(t, "binding", name)
				assert.Equal(t, corev1.ObjectReference{Kind: "Node", Name: "n1"}, binding.(*corev1.Binding).Target)
				assert.Equal(t, pod.GetUID(), binding.GetUID())
				return refused
			},
		}).Build()
	outcome, err := controllerruntime.Settle(t.Context(), c, bindingtest.SettleOptions{})
	require.ErrorIs(t, err, refused)
	require.Len(t, outcome.Unplaced, 1)
	assert.Empty(t, get(t, c, bindingtest.Pod("default", "web", "")).Spec.NodeName)
}
