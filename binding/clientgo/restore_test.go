package clientgo_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// deleter counts its calls.
type deleter struct{ calls atomic.Int32 }

func (d *deleter) Delete(context.Context, hooks.ReclaimRequest) error {
	d.calls.Add(1)
	return nil
}

// A server that is restored has a claim and a volume again that were deleted. The informers list anew and show them, which
// the controller ignores; the resync reads them live.
func TestResyncFindsWhatARestoreBroughtBack(t *testing.T) {
	server, ours := newServer(t,
		bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}
		}),
		bindingtest.Claim("default", "data", "5Gi")), &deleter{}
	r := start(t, server, func(r *clientgo.Runner) {
		r.Resync = 50 * time.Millisecond
		r.Options.Protection = decision.ProtectionOn
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": ours}
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	snapshot := server.Snapshot()
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	r.eventually(func() bool { return r.Volume("disk") == nil }, "R3 the volume is deleted")
	require.EqualValues(t, 1, ours.calls.Load(), "R3 and its storage")

	before := len(r.Calls())
	server.Restore(snapshot)
	read := func(key obj.Key) func() bool {
		return func() bool {
			for _, call := range r.CallsSince(before) {
				if call.Verb == bindingtest.VerbGet && call.Key == key {
					return true
				}
			}
			return false
		}
	}
	r.eventually(read(obj.ClaimKey("default", "data")), "W7 the claim is read live")
	r.eventually(read(obj.VolumeKey("disk")), "W7 the volume is read live")
	assert.True(t, r.bound("data"))
	assert.Equal(t, corev1.VolumeBound, r.phase("disk"))
	assert.EqualValues(t, 1, ours.calls.Load(), "V3 nothing is deleted while its claim exists")

	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	r.eventually(func() bool { return r.Volume("disk") == nil }, "what happens from then on is seen")
	assert.EqualValues(t, 1, ours.calls.Load(), "W8 R8 it has no storage any more")
}

// diary keeps the reasons of events, but for that of a restore, which comes with the first claim that is read after it.
type diary struct {
	mu      sync.Mutex
	reasons []decision.EventReason
}

func (d *diary) Record(event decision.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if event.Reason != decision.EventServerWentBack {
		d.reasons = append(d.reasons, event.Reason)
	}
}

func (d *diary) has(reasons ...decision.EventReason) func() bool {
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.Equal(reasons, d.reasons)
	}
}

// A class that was deleted is there again: its claims wait for their pods once more, as it says.
func TestARestoreBringsClassesBack(t *testing.T) {
	server, events := newWaiting(t), &diary{}
	r := start(t, server, func(r *clientgo.Runner) { r.Recorder, r.Pods, r.Options = events, clientgo.PodsIgnored, unprotected })
	r.eventually(events.has(decision.EventWaitForConsumer), "C3 it waits for a consumer")
	snapshot := server.Snapshot()
	require.NoError(t, server.Delete(t.Context(), obj.Key{Kind: obj.KindClass, Name: "local"}, deleteNow))
	r.eventually(events.has(decision.EventWaitForConsumer, decision.EventProvisioningFailed), "P1 its class is absent")
	server.Restore(snapshot)
	r.eventually(events.has(decision.EventWaitForConsumer, decision.EventProvisioningFailed, decision.EventWaitForConsumer), "W7 C3 it waits again")
}
