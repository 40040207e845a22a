package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

var keyA = obj.VolumeKey("a")

func absent(t *testing.T, server API, key obj.Key) {
	t.Helper()
	_, err := server.Get(t.Context(), key)
	assert.True(t, apierrors.IsNotFound(err), "%s is still there: %v", key, err)
}

// deleting creates a volume and deletes it, so that its finalizers hold it.
func deleting(t *testing.T, server API) pv {
	t.Helper()
	must.Create(t, server, bindingtest.Volume("a", "1Gi", func(v pv) { v.Finalizers = []string{"example.com/mine"} }))
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	return must.Get(t, server, bindingtest.Volume("a", "1Gi"))
}

func testDeleteWithoutFinalizers(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	must.Update(t, server, volume, func(v pv) { v.Finalizers = nil })
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}), "A5")
	absent(t, server, keyA)
	err := server.Delete(t.Context(), keyA, metav1.DeleteOptions{})
	assert.True(t, apierrors.IsNotFound(err), "A5 %v", err)
}

func testDeleteWithFinalizers(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := deleting(t, server)
	require.NotNil(t, volume.DeletionTimestamp, "A5")

	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	assert.Equal(t, volume, must.Get(t, server, volume), "A5 a second delete changes nothing")

	more := volume.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/more")
	_, err := server.Update(t.Context(), more)
	refused(t, "metadata.finalizers", err)
	_, err = server.UpdateStatus(t.Context(), more)
	refused(t, "metadata.finalizers", err)

	undead := must.Update(t, server, volume.DeepCopy(), func(v pv) { v.DeletionTimestamp = nil })
	assert.Equal(t, volume.DeletionTimestamp, undead.DeletionTimestamp, "A5 a deletion is not undone")

	one := must.Update(t, server, undead, func(v pv) { v.Finalizers = v.Finalizers[:1] })
	must.Update(t, server, one, func(v pv) { v.Finalizers = nil })
	absent(t, server, keyA)
}

func testLastFinalizerRemovedThroughStatus(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	must.UpdateStatus(t, server, deleting(t, server), func(v pv) { v.Finalizers = nil })
	absent(t, server, keyA)
}

func testAnUpdateDoesNotDelete(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	now := metav1.Now()
	volume.DeletionTimestamp = &now
	_, err := server.Update(t.Context(), volume)
	refused(t, "metadata.deletionTimestamp", err)
}

func testDeletePreconditions(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	volume = must.Update(t, server, volume, func(v pv) { v.Finalizers = nil })
	uid, version := volume.UID, volume.ResourceVersion
	for name, stale := range map[string]*metav1.Preconditions{
		"uid":     {UID: new(types.UID("another"))},
		"version": {UID: &uid, ResourceVersion: new("1000000")},
	} {
		err := server.Delete(t.Context(), keyA, metav1.DeleteOptions{Preconditions: stale})
		assert.True(t, apierrors.IsConflict(err), "A5 %s: %v", name, err)
	}
	fresh := &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{Preconditions: fresh}), "A5")
	absent(t, server, keyA)
}

func testRecreatedObjectIsAnother(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	first := deleting(t, server)
	must.Update(t, server, first, func(v pv) { v.Finalizers = nil })
	second := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	assert.NotEqual(t, first.UID, second.UID, "A1")
}
