package clientgo_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// A proxy that answers from a cache for a while looks like a restore, and no deleter is called for some time. One that comes within
// the minute after that has all read anew once more; it is told no second time.
func TestW8ARestoreShortlyAfterAnOldReply(t *testing.T) {
	server, ours, registry := newServer(t,
		bindingtest.Volume("free", "1Gi"), bindingtest.Claim("default", "old", "1Gi"),
		bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}
		}),
		bindingtest.Claim("default", "data", "5Gi")), &deleter{}, prometheus.NewRegistry()
	old := server.Claim("default", "old")
	old.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	reply, err := json.Marshal(old)
	require.NoError(t, err)
	set, between := behindProxy(t, server)
	r := start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Recorder, r.Registerer, r.Resync = set, server.Server, registry, -1
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": ours}
	})
	r.eventually(func() bool { return r.bound("old", "data") }, "both are bound")

	between.answer("GET /api/v1/namespaces/default/persistentvolumeclaims/old", string(reply))
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "old"), metav1.DeleteOptions{})) // the controller lets it go (F2)
	r.eventually(func() bool { return told(server) >= 1 }, "W8 live reads show the claim that is gone, as it was")
	between.answer("", "")
	r.eventually(func() bool { return r.phase("free") == corev1.VolumeReleased }, "V3 then the server answers")
	first := told(server) // again, where the watch has shown the end of the claim only then

	snapshot := server.Snapshot()
	remove(t, server, "data")
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3")
	before := len(server.Calls())
	server.Restore(snapshot)
	r.eventually(func() bool {
		return slices.ContainsFunc(server.CallsSince(before), func(call bindingtest.Call) bool {
			return call.Verb == bindingtest.VerbGet && call.Key == obj.VolumeKey("disk")
		})
	}, "W8 it is read once more")
	pair(t, server, "later")
	r.eventually(func() bool { return r.bound("later") }, "work goes on")
	assert.Equal(t, corev1.VolumeBound, r.phase("disk"))
	assert.Equal(t, first, told(server), "N not again within a minute")
	assert.Zero(t, ours.calls.Load(), "R8 another controller may be at work that has announced what the server has lost")
	assert.EqualValues(t, first, counted(t, registry, "pvbind_server_went_back_total"))
}
