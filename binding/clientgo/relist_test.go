package clientgo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
)

// unwatched does something while nobody can watch, and has it forgotten, so that only new lists tell of it.
func (r *running) unwatched(do func()) {
	r.t.Helper()
	r.Deny(func(request apitest.Request) bool { return request.Verb == "watch" || request.Verb == "list" })
	r.Disconnect()
	do()
	r.Compact()
	r.Deny(nil)
}

func TestRelistTellsOfADeletedClaim(t *testing.T) {
	r := start(t, newPair(t))
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	r.unwatched(func() { remove(t, r.Server, "data") })
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 the volume is released")
}

func TestRelistTellsOfARecreatedClaim(t *testing.T) {
	r := start(t, newPair(t))
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	r.unwatched(func() {
		remove(t, r.Server, "data")
		_, err := r.Create(t.Context(), bindingtest.Claim("default", "data", "5Gi"))
		require.NoError(t, err)
	})
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 the volume is released")
	r.eventually(r.has("FailedBinding"), "C5 nothing fits the new claim")
	assert.Empty(t, r.Claim("default", "data").Spec.VolumeName, "X3 it does not inherit the volume")
}

func TestReconnectTellsOfWhatWasMissed(t *testing.T) {
	r := start(t, newPair(t))
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	for _, name := range []string{"more-1", "more-2"} {
		r.Disconnect()
		_, err := r.Create(t.Context(), bindingtest.Volume("disk-of-"+name, "10Gi"))
		require.NoError(t, err)
		_, err = r.Create(t.Context(), bindingtest.Claim("default", name, "5Gi"))
		require.NoError(t, err)
		r.eventually(func() bool { return r.bound(name) }, name+" is bound")
	}
}

// A claim that is created and deleted while claims cannot be watched is known from a live read alone: the new list does
// not tell of its end.
func TestResyncFindsWhatNoInformerHasShown(t *testing.T) {
	r := start(t, newPair(t), func(r *clientgo.Runner) { r.Resync = 50 * time.Millisecond })
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	r.Deny(func(request apitest.Request) bool {
		return request.Resource == "persistentvolumeclaims" && (request.Verb == "watch" || request.Verb == "list")
	})
	r.Disconnect()
	brief, err := r.Create(t.Context(), bindingtest.Claim("default", "brief", "5Gi"))
	require.NoError(t, err)
	_, err = r.Create(t.Context(), bindingtest.Volume("disk-of-brief", "10Gi", func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "brief", UID: brief.GetUID()}
	}))
	require.NoError(t, err)
	r.eventually(func() bool { return r.bound("brief") }, "V3 it is found by a live read, and bound")
	remove(t, r.Server, "brief")
	r.Compact()
	r.Deny(nil)
	r.eventually(func() bool { return r.phase("disk-of-brief") == corev1.VolumeReleased }, "V3 the volume is released")
	assert.Equal(t, corev1.VolumeBound, r.phase("disk"), "the other claim is there")
}
