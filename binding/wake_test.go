package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// stateOf is a state that was told of the objects.
func stateOf(objects ...obj.Object) *binding.State {
	state := binding.NewState(binding.Rules{})
	for _, object := range objects {
		state.Observe(object)
	}
	return state
}

// at is the object on another resourceVersion.
func at[T obj.Object](version string, object T) T {
	object.SetResourceVersion(version)
	return object
}

func TestWhatWakesWhat(t *testing.T) {
	pv, data, other := obj.VolumeKey("a"), dataKey, obj.ClaimKey("default", "other")
	keys := func(keys ...obj.Key) []obj.Key { return keys }
	bound := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append([]volumeEdit{held}, edits...)...)
	}
	fast := classOf("fast", "csi.example.com")
	for _, test := range []struct {
		name    string
		known   []obj.Object
		changed obj.Object
		gone    obj.Object
		want    []obj.Key
	}{
		{name: "W1 a new volume", changed: knownVolume("a"), want: keys(pv)},
		{name: "W1 M12 a volume that is reserved: its claim too", known: []obj.Object{knownClaim()}, changed: knownVolume("a", reserved), want: keys(pv, data)},
		{name: "W1 reserved for a claim that is not there", changed: knownVolume("a", reserved), want: keys(pv)},
		{name: "W1 C6 a volume that a claim names: that claim", known: []obj.Object{knownClaim(naming("a"))}, changed: knownVolume("a"), want: keys(pv, data)},
		{name: "W2 the claimRef goes: who had it", known: []obj.Object{knownClaim(), bound()}, changed: at("9", knownVolume("a")), want: keys(pv, data)},
		{name: "W2 the claimRef changes hands: both", known: []obj.Object{knownClaim(), knownClaim(named("other")), bound()},
			changed: at("9", knownVolume("a", refersToOther)), want: keys(pv, data, other)},
		{name: "W2 V5 the volume goes: its claim", known: []obj.Object{knownClaim(boundTo("a")), bound()}, gone: bound(), want: keys(pv, data)},
		{name: "W2 V5 one that is not known", gone: bound(), want: nil},

		{name: "W3 a new claim", changed: knownClaim(), want: keys(data)},
		{name: "W3 a new claim of a name that volumes have", known: []obj.Object{bound(), knownVolume("b", reserved)}, changed: knownClaim(), want: keys(data, pv, obj.VolumeKey("b"))},
		{name: "W3 a claim changes: the volume that it names", known: []obj.Object{knownClaim(boundTo("a"))}, changed: at("9", knownClaim(boundTo("a"))), want: keys(data, pv)},
		{name: "W3 a claim goes: the volume that it names", known: []obj.Object{knownClaim(boundTo("a"))}, gone: knownClaim(boundTo("a")), want: keys(data, pv)},
		{name: "W3 a claim goes: every volume with its name", known: []obj.Object{knownClaim(), bound(), knownVolume("b", refersToGone)}, gone: knownClaim(), want: keys(data, pv, obj.VolumeKey("b"))},
		{name: "W3 one that is not known", gone: knownClaim(), want: nil},
		{name: "W3 M2 a claim that a free volume belongs to goes: who names that volume too", known: []obj.Object{knownVolume("a"), knownClaim(boundTo("a")), knownClaim(named("other"), naming("a"))},
			gone: knownClaim(boundTo("a")), want: keys(data, pv, other)},
		{name: "W3 M2 such a claim comes", known: []obj.Object{knownVolume("a"), knownClaim(named("other"), naming("a"))}, changed: knownClaim(boundTo("a")), want: keys(data, pv, other)},
		{name: "W3 M2 a claim becomes one", known: []obj.Object{knownVolume("a"), knownClaim(naming("a")), knownClaim(named("other"), naming("a"))},
			changed: at("9", knownClaim(boundTo("a"))), want: keys(data, pv, other)},
		{name: "W3 M2 not where a claimRef says whose it is", known: []obj.Object{bound(), knownClaim(boundTo("a")), knownClaim(named("other"), naming("a"))},
			gone: knownClaim(boundTo("a")), want: keys(data, pv)},
		{name: "W3 M2 nor for a claim that was never bound to it", known: []obj.Object{knownVolume("a"), knownClaim(naming("a")), knownClaim(named("other"), naming("a"))},
			gone: knownClaim(naming("a")), want: keys(data, pv)},

		{name: "W4 a class: who names it", known: []obj.Object{knownClaim(askingClass(new("fast"))), knownClaim(named("other"))}, changed: fast, want: keys(data)},
		{name: "W4 by the beta annotation", known: []obj.Object{knownClaim(claimNote(betaClass, "fast"))}, changed: fast, want: keys(data)},
		{name: "W4 the default class: who names none", known: []obj.Object{knownClaim(askingClass(nil)), knownClaim(named("other"))}, changed: classOf("fast", "csi.example.com", defaultClass), want: keys(data)},
		{name: "W4 not a claim that has a volume", known: []obj.Object{knownClaim(boundTo("a"), askingClass(new("fast")))}, changed: fast, want: nil},
		{name: "W4 made default", known: []obj.Object{at("1", classOf("fast", "csi.example.com")), knownClaim(askingClass(nil))}, changed: at("2", classOf("fast", "csi.example.com", defaultClass)), want: keys(data)},
		{name: "W4 the same again", known: []obj.Object{at("1", classOf("fast", "csi.example.com")), knownClaim(askingClass(new("fast")))}, changed: at("1", classOf("fast", "csi.example.com")), want: nil},
		{name: "W4 a class goes: who names it", known: []obj.Object{at("1", classOf("fast", "csi.example.com")), knownClaim(askingClass(new("fast")))}, gone: at("1", classOf("fast", "csi.example.com")), want: keys(data)},

		{name: "W5 a pod: its claims, and the volumes that wait for it", known: []obj.Object{knownClaim(), bound()}, changed: podUsing("web-0"), want: keys(data, pv)},
		{name: "W5 a pod of no claim", changed: podUsing("web-0", func(p *corev1.Pod) { p.Spec.Volumes = nil }), want: nil},
		{name: "W5 a pod changes", known: []obj.Object{at("1", podUsing("web-0"))}, changed: at("2", podUsing("web-0", scheduled)), want: keys(data)},
		{name: "W5 a pod goes", known: []obj.Object{podUsing("web-0"), bound()}, gone: podUsing("web-0"), want: keys(data, pv)},
		{name: "W5 one that is not known", gone: podUsing("web-0"), want: nil},

		{name: "W5 an attachment of a Released volume", known: []obj.Object{bound(inPhase(corev1.VolumeReleased))}, changed: attachedTo("n"), want: keys(pv)},
		{name: "W5 of a Failed one", known: []obj.Object{bound(inPhase(corev1.VolumeFailed))}, changed: attachedTo("n"), want: keys(pv)},
		{name: "W5 of one that nobody reclaims", known: []obj.Object{bound(inPhase(corev1.VolumeBound))}, changed: attachedTo("n"), want: nil},
		{name: "W5 of one that is not known", changed: attachedTo("n"), want: nil},
		{name: "W5 of a volume that is written into a pod", known: []obj.Object{bound(inPhase(corev1.VolumeReleased))}, changed: attachedTo("n", inline), want: nil},
		{name: "W5 it goes", known: []obj.Object{bound(inPhase(corev1.VolumeReleased)), attachedTo("n")}, gone: attachedTo("n"), want: keys(pv)},
		{name: "W5 one that was not known goes", known: []obj.Object{bound(inPhase(corev1.VolumeReleased))}, gone: attachedTo("n"), want: nil},
		{name: "W5 it changes hands: both", known: []obj.Object{bound(inPhase(corev1.VolumeReleased)), knownVolume("b", inPhase(corev1.VolumeFailed)), attachedTo("n")},
			changed: at("9", attachedTo("n", ofVolume("b"))), want: keys(pv, obj.VolumeKey("b"))},
		{name: "X5 an older attachment", known: []obj.Object{bound(inPhase(corev1.VolumeReleased)), attachedTo("n")}, changed: at("4", attachedTo("n")), want: nil},

		{name: "X5 the same volume again", known: []obj.Object{bound()}, changed: bound(), want: nil},
		{name: "X5 an older volume", known: []obj.Object{at("10", bound())}, changed: at("9", bound()), want: nil},
		{name: "X5 the same claim again", known: []obj.Object{knownClaim()}, changed: knownClaim(), want: nil},
		{name: "X5 an older claim", known: []obj.Object{at("10", knownClaim())}, changed: at("9", knownClaim()), want: nil},
		{name: "X5 an older pod", known: []obj.Object{at("10", podUsing("web-0"))}, changed: at("9", podUsing("web-0")), want: nil},
		{name: "X5 a number with more digits is newer", known: []obj.Object{at("9", bound())}, changed: at("10", bound()), want: keys(pv)},
		{name: "nodes wake nobody", changed: &corev1.Node{}, want: nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := stateOf(test.known...)
			if test.gone != nil {
				assert.ElementsMatch(t, test.want, state.Forget(test.gone))
				assert.Empty(t, state.Forget(test.gone), "it is gone already")
				return
			}
			assert.ElementsMatch(t, test.want, state.Observe(test.changed), "none twice")
		})
	}
}

// TestB6AClaimWhoseVolumeIsInOtherHands asks for a claim that names a volume, while another claim's sync is about to
// bind it: whose it will be is not known yet, so nothing is decided and nobody is told.
func TestB6AClaimWhoseVolumeIsInOtherHands(t *testing.T) {
	names := obj.ClaimKey("default", "names")
	state := stateOf(knownVolume("a"), knownClaim(), knownClaim(named("names"), naming("a"), asking("50Gi")))
	require.Equal(t, "B1", state.Start(dataKey).Action().Rule)

	early := state.Start(names)
	assert.True(t, early.Done())
	assert.Empty(t, early.Published())
	assert.Empty(t, early.Next())

	ended := state.Proceed(dataKey, binding.Reply(nil, apierrors.NewForbidden(schema.GroupResource{}, "a", nil)))
	require.True(t, ended.Done())
	assert.Contains(t, ended.Next(), names)
	events := state.Start(names).Published()
	require.Len(t, events, 1)
	assert.Equal(t, binding.EventVolumeMismatch, events[0].Reason, "C7, not C9")
}
