package bindingtest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestLines(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.Use(bindingtest.LoseAnswer(1, bindingtest.OnStatus(obj.KindVolume)))
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	stale := volume.DeepCopy()
	volume = must.Update(t, server, volume, func(v pv) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-9"}
		v.Annotations = map[string]string{"b": "yes", "a": "some text"}
		v.Labels = map[string]string{"disk": "fast"}
	})
	_, err := client.UpdateStatus(t.Context(), boundVolume(volume))
	require.ErrorIs(t, err, bindingtest.ErrAnswerLost)
	volume = must.Update(t, server, must.Get(t, server, volume), func(v pv) {
		v.Spec.ClaimRef.UID = ""
		v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadOnlyMany)
		v.Annotations = map[string]string{"a": "other"}
		v.Labels = nil
	})
	volume = must.Update(t, server, volume, func(v pv) { v.Spec.ClaimRef = nil })
	volume = must.Update(t, server, volume)
	_, err = server.Update(t.Context(), stale)
	require.Error(t, err)
	_, err = server.Get(t.Context(), obj.VolumeKey("b"))
	require.Error(t, err)
	_, err = server.ListPods(t.Context(), "default")
	require.NoError(t, err)
	server.Record(decision.Event{On: keyA, Type: "Normal", Reason: "Seen", Message: "said"})
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	must.Update(t, server, must.Get(t, server, volume), func(v pv) { v.Finalizers = nil })

	want := []string{
		"create pv/a",
		`update pv/a: spec.claimRef={default/data uid-9} +annotation a="some text" +annotation b +label disk=fast`,
		"update status pv/a: status.phase=Bound, but answered: bindingtest: connection lost while waiting for the answer",
		"get pv/a",
		"update pv/a: spec.accessModes=[ReadWriteOnce ReadOnlyMany] spec.claimRef={default/data} annotation a=other -annotation b -label disk",
		"update pv/a: -spec.claimRef",
		"update pv/a: nothing changed",
		"update pv/a: failed: Conflict",
		"get pv/b: failed: NotFound",
		"list pods in default",
		"event Normal Seen pv/a: said",
		"delete pv/a: +deletionTimestamp",
		"get pv/a",
		"update pv/a: -finalizer kubernetes.io/pv-protection, gone",
	}
	var lines []string
	for _, call := range server.Calls() {
		lines = append(lines, call.String())
	}
	assert.Equal(t, want, lines)
	assert.Equal(t, "me", server.Calls()[2].Actor)
	assert.Empty(t, server.Calls()[0].Actor)
}

func boundVolume(volume pv) pv {
	volume = volume.DeepCopy()
	volume.Status.Phase = corev1.VolumeBound
	return volume
}

func TestDiffOfWholeObjects(t *testing.T) {
	claim := bindingtest.Claim("default", "data", "1Gi", func(c pvc) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists"}}}
		c.Spec.StorageClassName = new("")
	})
	const all = `spec.accessModes=[ReadWriteOnce] spec.resources.requests.storage=1Gi` +
		` spec.selector.matchExpressions=[{"key":"a","operator":"Exists"}] spec.storageClassName=""`
	assert.Equal(t, all, bindingtest.Diff(nil, claim))
	assert.Empty(t, bindingtest.Diff(claim, claim))
	assert.Equal(t, "-spec.storageClassName", bindingtest.Diff(claim, bindingtest.Claim("default", "data", "1Gi", func(c pvc) {
		c.Spec.Selector = claim.Spec.Selector
	})))
}

func TestFailedCallThatNeverReachedTheServer(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.Use(bindingtest.Fail(1, bindingtest.AnyWrite, errors.New("no route")))
	_, err := client.Create(t.Context(), bindingtest.Volume("a", "1Gi"))
	require.EqualError(t, err, "no route")
	require.Len(t, server.Calls(), 1)
	assert.Equal(t, "create pv/a: failed: no route", server.Calls()[0].String())
	assert.Nil(t, server.Volume("a"))
}
