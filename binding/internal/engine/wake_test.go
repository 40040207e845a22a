package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// stateOf returns a state that has observed the objects.
func stateOf(objects ...obj.Object) *engine.State {
	state := engine.New(Unprotected(decision.Options{}), 10)
	for _, object := range objects {
		state.Observe(object)
	}
	return state
}

func TestWhatWakesWhat(t *testing.T) {
	pv, data, other := obj.VolumeKey("a"), DataKey, obj.ClaimKey("default", "other")
	keys := func(keys ...obj.Key) []obj.Key { return keys }
	bound := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append([]VolumeEdit{BoundToClaim}, edits...)...)
	}
	slip := KnownVolume("a", RefersTo("default", "slip", KnownClaim(Named("other")).UID))
	made := KnownVolume(decision.ProvisionedName(KnownClaim().UID), RefersToOther)
	released := KnownVolume("a", RefersToStale, InPhase(corev1.VolumeReleased))
	fast := ClassOf("fast", "csi.example.com")
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"seen": "yes"} }
	usingMany := func(p *corev1.Pod) {
		p.Spec.Volumes = bindingtest.Pod("default", p.Name, "", names(engine.MaxLinks+1)...).Spec.Volumes
	}
	for _, test := range []struct {
		name     string
		known    []obj.Object
		changed  obj.Object
		gone     obj.Object
		expected []obj.Key
	}{
		{name: "W1 a new volume", changed: KnownVolume("a"), expected: keys(pv)},
		{name: "W1 M12 a volume that is reserved: its claim too", known: []obj.Object{KnownClaim()}, changed: KnownVolume("a", PreBound), expected: keys(pv, data)},
		{name: "W1 reserved for a claim that is not there", changed: KnownVolume("a", PreBound), expected: keys(pv)},
		{name: "W1 C6 a volume that a claim names: that claim", known: []obj.Object{KnownClaim(Naming("a"))}, changed: KnownVolume("a"), expected: keys(pv, data)},
		{name: "W2 the claimRef goes: who had it", known: []obj.Object{KnownClaim(), bound()}, changed: At("9", KnownVolume("a")), expected: keys(pv, data)},
		{name: "W2 the claimRef changes hands: both", known: []obj.Object{KnownClaim(), KnownClaim(Named("other")), bound()},
			changed: At("9", KnownVolume("a", RefersToOther)), expected: keys(pv, data, other)},
		{name: "W2 V5 the volume goes: its claim", known: []obj.Object{KnownClaim(BoundTo("a")), bound()}, gone: bound(), expected: keys(pv, data)},
		{name: "W2 V5 one that is not known", gone: bound(), expected: nil},
		{name: "W2 P2 what was made for a claim goes, and was another's: that claim", known: []obj.Object{KnownClaim(), made}, gone: made, expected: keys(obj.VolumeKey(made.Name), data)},

		{name: "W3 a new claim", changed: KnownClaim(), expected: keys(data)},
		{name: "W3 a new claim of a name that volumes have", known: []obj.Object{bound(), KnownVolume("b", PreBound)}, changed: KnownClaim(), expected: keys(data, pv, obj.VolumeKey("b"))},
		{name: "W3 a claim changes: the volume that is bound to it", known: []obj.Object{KnownClaim(BoundTo("a")), bound()}, changed: At("9", KnownClaim(BoundTo("a"))), expected: keys(data, pv)},
		{name: "W3 W6 not a volume that is another's", known: []obj.Object{KnownClaim(Named("other"), Naming("a")), bound(InPhase(corev1.VolumeReleased))}, changed: At("9", KnownClaim(Named("other"), Naming("a"))), expected: keys(other)},
		{name: "W3 W6 nor does a claim that comes", known: []obj.Object{bound(InPhase(corev1.VolumeReleased))}, changed: KnownClaim(Named("other"), Naming("a")), expected: keys(other)},
		{name: "W3 W6 nor one that goes", known: []obj.Object{bound(InPhase(corev1.VolumeReleased)), KnownClaim(Named("other"), Naming("a"))}, gone: KnownClaim(Named("other"), Naming("a")), expected: keys(other)},
		{name: "W3 W6 nor one that stays Lost", known: []obj.Object{bound(), KnownClaim(Named("other"), BoundTo("a"), Lost)}, changed: At("9", KnownClaim(Named("other"), BoundTo("a"), Lost)), expected: keys(other)},
		{name: "W3 but for one that becomes Lost", known: []obj.Object{bound(), KnownClaim(Named("other"), BoundTo("a"))}, changed: At("9", KnownClaim(Named("other"), BoundTo("a"), Lost)), expected: keys(other, pv)},
		{name: "W3 and one that was Lost, whose UID is in claimRef, and goes", known: []obj.Object{slip, KnownClaim(Named("other"), BoundTo("a"), Lost)}, gone: KnownClaim(Named("other"), BoundTo("a"), Lost), expected: keys(other, pv)},
		{name: "W3 W6 not one that becomes Lost by what its tenant writes onto it", known: []obj.Object{bound(), KnownClaim(Named("other"), Naming("a"))},
			changed: At("9", KnownClaim(Named("other"), Naming("a"), Lost)), expected: keys(other)},
		{name: "W3 W6 nor one that was, and goes", known: []obj.Object{bound(), KnownClaim(Named("other"), Naming("a"), Lost)},
			gone: KnownClaim(Named("other"), Naming("a"), Lost), expected: keys(other)},
		{name: "W3 R4 one that becomes Lost, and has its name in claimRef: its pods count", known: []obj.Object{released, KnownClaim(Naming("a"))},
			changed: At("9", KnownClaim(Naming("a"), Lost)), expected: keys(data, pv)},
		{name: "W3 R4 and one that was Lost: they count no more", known: []obj.Object{released, KnownClaim(Naming("a"), Lost)}, changed: At("9", KnownClaim(Naming("a"))), expected: keys(data, pv)},
		{name: "W3 R4 W6 not one of another name", known: []obj.Object{released, KnownClaim(Named("other"), Naming("a"))},
			changed: At("9", KnownClaim(Named("other"), Naming("a"), Lost)), expected: keys(other)},
		{name: "W3 R4 not where it is not reclaimed", known: []obj.Object{KnownVolume("a", RefersToStale, InPhase(corev1.VolumeBound)), KnownClaim(Naming("a"))},
			changed: At("9", KnownClaim(Naming("a"), Lost)), expected: keys(data)},
		{name: "W3 M2 the owner of a free volume changes: whose it is stays", known: []obj.Object{KnownVolume("a"), KnownClaim(BoundTo("a")), KnownClaim(Named("other"), Naming("a"))},
			changed: At("9", KnownClaim(BoundTo("a"))), expected: keys(data)},
		{name: "W3 a claim goes: the volume that it names", known: []obj.Object{KnownClaim(BoundTo("a"))}, gone: KnownClaim(BoundTo("a")), expected: keys(data, pv)},
		{name: "W3 a claim goes: every volume with its name", known: []obj.Object{KnownClaim(), bound(), KnownVolume("b", RefersToStale)}, gone: KnownClaim(), expected: keys(data, pv, obj.VolumeKey("b"))},
		{name: "W3 one that is not known", gone: KnownClaim(), expected: nil},
		{name: "W3 M2 a claim that a free volume belongs to goes: who names that volume too", known: []obj.Object{KnownVolume("a"), KnownClaim(BoundTo("a")), KnownClaim(Named("other"), Naming("a"))},
			gone: KnownClaim(BoundTo("a")), expected: keys(data, pv, other)},
		{name: "W3 M2 V1 so it is where the claimRef names no claim", known: []obj.Object{KnownVolume("a", RefersTo("", "", "uid-1")), KnownClaim(BoundTo("a")), KnownClaim(Named("other"), Naming("a"))},
			changed: At("9", KnownClaim(BoundTo("a"), Lost)), expected: keys(data, pv, other)},
		{name: "W3 M2 such a claim comes", known: []obj.Object{KnownVolume("a"), KnownClaim(Named("other"), Naming("a"))}, changed: KnownClaim(BoundTo("a")), expected: keys(data, pv, other)},
		{name: "W3 M2 a claim becomes one", known: []obj.Object{KnownVolume("a"), KnownClaim(Naming("a")), KnownClaim(Named("other"), Naming("a"))},
			changed: At("9", KnownClaim(BoundTo("a"))), expected: keys(data, pv, other)},
		{name: "W3 M2 not where a claimRef says whose it is", known: []obj.Object{bound(), KnownClaim(BoundTo("a")), KnownClaim(Named("other"), Naming("a"))},
			gone: KnownClaim(BoundTo("a")), expected: keys(data, pv)},
		{name: "W3 M2 nor for a claim that was never bound to it", known: []obj.Object{KnownVolume("a"), KnownClaim(Naming("a")), KnownClaim(Named("other"), Naming("a"))},
			gone: KnownClaim(Naming("a")), expected: keys(data)},

		{name: "W4 a class: who names it", known: []obj.Object{KnownClaim(RequestingClass(new("fast"))), KnownClaim(Named("other"))}, changed: fast, expected: keys(data)},
		{name: "W4 by the beta annotation", known: []obj.Object{KnownClaim(ClaimNote(BetaClass, "fast"))}, changed: fast, expected: keys(data)},
		{name: "W4 the default class: who names none", known: []obj.Object{KnownClaim(RequestingClass(nil)), KnownClaim(Named("other"))}, changed: ClassOf("fast", "csi.example.com", DefaultClass), expected: keys(data)},
		{name: "W4 not a claim that has a volume", known: []obj.Object{KnownClaim(BoundTo("a"), RequestingClass(new("fast")))}, changed: fast, expected: nil},
		{name: "W4 made default", known: []obj.Object{At("1", ClassOf("fast", "csi.example.com")), KnownClaim(RequestingClass(nil))}, changed: At("2", ClassOf("fast", "csi.example.com", DefaultClass)), expected: keys(data)},
		{name: "W4 the same again", known: []obj.Object{At("1", ClassOf("fast", "csi.example.com")), KnownClaim(RequestingClass(new("fast")))}, changed: At("1", ClassOf("fast", "csi.example.com")), expected: nil},
		{name: "W4 a class goes: who names it", known: []obj.Object{At("1", ClassOf("fast", "csi.example.com")), KnownClaim(RequestingClass(new("fast")))}, gone: At("1", ClassOf("fast", "csi.example.com")), expected: keys(data)},

		{name: "W5 a pod: its claims, and the volumes that wait for it", known: []obj.Object{KnownClaim(), bound()}, changed: PodUsing("web-0"), expected: keys(data, pv)},
		{name: "W5 a pod of no claim", changed: PodUsing("web-0", func(p *corev1.Pod) { p.Spec.Volumes = nil }), expected: nil},
		{name: "W5 a pod changes", known: []obj.Object{At("1", PodUsing("web-0"))}, changed: At("2", PodUsing("web-0", Scheduled)), expected: keys(data)},
		{name: "W5 a pod is labelled", known: []obj.Object{At("1", PodUsing("web-0")), bound()}, changed: At("2", PodUsing("web-0", labelled)), expected: nil},
		{name: "W5 a pod of very many claims is labelled", known: []obj.Object{At("1", PodUsing("web-0", usingMany))}, changed: At("2", PodUsing("web-0", usingMany, labelled)), expected: nil},
		{name: "W5 a pod finishes", known: []obj.Object{At("1", PodUsing("web-0")), bound()}, changed: At("2", PodUsing("web-0", PodPhase(corev1.PodFailed))), expected: keys(data, pv)},
		{name: "W5 a pod is another of the name", known: []obj.Object{At("1", PodUsing("web-0"))}, changed: At("2", PodUsing("web-0", func(p *corev1.Pod) { p.UID = "another" })), expected: keys(data)},
		{name: "W5 a pod goes", known: []obj.Object{PodUsing("web-0"), bound()}, gone: PodUsing("web-0"), expected: keys(data, pv)},
		{name: "W5 one that is not known", gone: PodUsing("web-0"), expected: nil},

		{name: "W5 an attachment of a Released volume", known: []obj.Object{bound(InPhase(corev1.VolumeReleased))}, changed: AttachedTo("n"), expected: keys(pv)},
		{name: "W5 of a Failed one", known: []obj.Object{bound(InPhase(corev1.VolumeFailed))}, changed: AttachedTo("n"), expected: keys(pv)},
		{name: "W5 of one that nobody reclaims", known: []obj.Object{bound(InPhase(corev1.VolumeBound))}, changed: AttachedTo("n"), expected: nil},
		{name: "W5 of one that is not known", changed: AttachedTo("n"), expected: nil},
		{name: "W5 of a volume that is written into a pod", known: []obj.Object{bound(InPhase(corev1.VolumeReleased))}, changed: AttachedTo("n", Inline), expected: nil},
		{name: "W5 it goes", known: []obj.Object{bound(InPhase(corev1.VolumeReleased)), AttachedTo("n")}, gone: AttachedTo("n"), expected: keys(pv)},
		{name: "W5 one that was not known goes", known: []obj.Object{bound(InPhase(corev1.VolumeReleased))}, gone: AttachedTo("n"), expected: nil},
		{name: "W5 it changes hands: both", known: []obj.Object{bound(InPhase(corev1.VolumeReleased)), KnownVolume("b", InPhase(corev1.VolumeFailed)), AttachedTo("n")},
			changed: At("9", AttachedTo("n", OfVolume("b"))), expected: keys(pv, obj.VolumeKey("b"))},
		{name: "X5 an older attachment", known: []obj.Object{bound(InPhase(corev1.VolumeReleased)), AttachedTo("n")}, changed: At("4", AttachedTo("n")), expected: nil},

		{name: "X5 the same volume again", known: []obj.Object{bound()}, changed: bound(), expected: nil},
		{name: "X5 an older volume", known: []obj.Object{At("10", bound())}, changed: At("9", bound()), expected: nil},
		{name: "X5 the same claim again", known: []obj.Object{KnownClaim()}, changed: KnownClaim(), expected: nil},
		{name: "X5 an older claim", known: []obj.Object{At("10", KnownClaim())}, changed: At("9", KnownClaim()), expected: nil},
		{name: "X5 an older pod", known: []obj.Object{At("10", PodUsing("web-0"))}, changed: At("9", PodUsing("web-0")), expected: nil},
		{name: "X5 a number with more digits is newer", known: []obj.Object{At("9", bound())}, changed: At("10", bound()), expected: keys(pv)},
		{name: "nodes wake nobody", changed: &corev1.Node{}, expected: nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := stateOf(test.known...)
			if test.gone != nil {
				assert.ElementsMatch(t, test.expected, state.ObserveDeleted(test.gone))
				assert.Empty(t, state.ObserveDeleted(test.gone), "it is gone already")
				return
			}
			assert.ElementsMatch(t, test.expected, state.Observe(test.changed), "none twice")
		})
	}
}

// names returns n names of claims.
func names(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("data-", i))
	}
	return names
}

// TestB6AClaimWhoseVolumeIsLocked asks for a claim that names a volume, while another claim's sync is about to
// bind it: whose it will be is not known yet, so nothing is decided and no event sent.
func TestB6AClaimWhoseVolumeIsLocked(t *testing.T) {
	names := obj.ClaimKey("default", "names")
	state := stateOf(KnownVolume("a"), KnownClaim(), KnownClaim(Named("names"), Naming("a"), Requesting("50Gi")))
	require.Equal(t, "B1", state.Start(DataKey).Action.Rule)

	early := state.Start(names)
	assert.True(t, early.Done)
	assert.Empty(t, early.Publish)
	assert.Empty(t, early.Next)

	ended := state.Proceed(DataKey, engine.Reply{Err: apierrors.NewForbidden(schema.GroupResource{}, "a", nil)})
	require.True(t, ended.Done)
	assert.Contains(t, ended.Next, names)
	events := state.Start(names).Publish
	require.Len(t, events, 1)
	assert.Equal(t, decision.EventVolumeMismatch, events[0].Reason, "C7, not C9")
}

// W6: a volume waits for its deleter's delay. Who edits the next claim of its claim's name does not have it called before, nor does what is
// announced on that one.
func TestW6TheNextClaimOfItsNameDoesNotWakeAVolume(t *testing.T) {
	released := KnownVolume("a", RefersTo("default", "data", "uid-8"), InPhase(corev1.VolumeReleased))
	state := stateOf(released)
	assert.Contains(t, state.Observe(At("20", KnownClaim())), AKey, "it comes")
	assert.NotContains(t, state.Observe(At("21", KnownClaim(ClaimNote("x", "y")))), AKey)
	assert.Contains(t, state.Observe(At("22", KnownClaim(OfUID("uid-8")))), AKey, "its own comes")
	assert.Contains(t, state.Observe(At("23", KnownClaim(OfUID("uid-8"), ClaimNote("x", "y")))), AKey, "its own")
	assert.Contains(t, state.ObserveDeleted(state.Known(DataKey)), AKey, "its own goes")

	later := KnownVolume("a", RefersTo("default", "data", "uid-8"), InPhase(corev1.VolumeBound))
	later.Spec.ClaimRef.ResourceVersion = "21"
	state = stateOf(later, At("20", KnownClaim()))
	assert.Contains(t, state.Observe(At("22", KnownClaim(ClaimNote("x", "y")))), AKey, "V3: it was older than claimRef says")
	assert.NotContains(t, state.Observe(At("23", KnownClaim(ClaimNote("x", "z")))), AKey)
}

// W3, X10: a slip in its claimRef hides the claim that a volume is kept for (R3), and bind-completed was taken off that, before this controller
// has started. Nothing else says that the claim is gone.
func TestW3TheClaimThatAVolumeIsKeptForGoes(t *testing.T) {
	claim := KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending))
	state := stateOf(KnownVolume("a", RefersTo("default", "slip", claim.UID), InPhase(corev1.VolumeBound)), claim)
	assert.Contains(t, state.ObserveDeleted(claim), AKey)
}
