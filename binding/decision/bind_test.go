package decision_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// pair is a claim and a volume, and the writes that bind them.
type pair struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

func hasIOPS(volume *corev1.PersistentVolume) {
	volume.Spec.Capacity["example.com/iops"] = resource.MustParse("5")
}

func claimHasIOPS(claim *corev1.PersistentVolumeClaim) {
	claim.Status.Capacity["example.com/iops"] = resource.MustParse("5")
}

func (p *pair) next(t *testing.T) decision.Action {
	t.Helper()
	action, err := decision.NextForClaim(p.claim, Proving(Knowing(p.volume, p.claim), obj.KeyOf(p.claim)), Unprotected(decision.Options{}))
	require.NoError(t, err)
	return action
}

// apply puts what an action writes in place.
func (p *pair) apply(action decision.Action) {
	if action.Volume != nil {
		p.volume = action.Volume
	}
	if action.Claim != nil {
		p.claim = action.Claim
	}
}

func (p *pair) bind(t *testing.T) (rules []string) {
	t.Helper()
	for range 10 {
		action := p.next(t)
		rules = append(rules, action.Rule)
		if !action.Writes() {
			return rules
		}
		p.apply(action)
	}
	require.Fail(t, "X8: no end", "%s", rules)
	return nil
}

func TestB1ClaimRefInFull(t *testing.T) {
	action := (&pair{KnownClaim(), KnownVolume("a")}).next(t)

	assert.Equal(t, &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7",
	}, action.Volume.Spec.ClaimRef, "B1")
	assert.Equal(t, "yes", action.Volume.Annotations[BoundBy], "B1")
}

func TestB1KeepsAReserversClaimRef(t *testing.T) {
	reservedIn := KnownVolume("a", PreBound, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.FieldPath = "theirs" })
	action := (&pair{KnownClaim(), reservedIn}).next(t)

	assert.Equal(t, "uid-1", string(action.Volume.Spec.ClaimRef.UID), "B1")
	assert.NotContains(t, action.Volume.Annotations, BoundBy, "B1: a person's link stays one (V4)")

	for _, reserved := range []*corev1.PersistentVolume{
		KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes"), VolumeNote("theirs", "yes"), InPhase(corev1.VolumeReleased)),
		KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes"), VolumeNote("theirs", "yes"), InPhase(corev1.VolumeFailed)),
	} {
		action = (&pair{KnownClaim(), reserved}).next(t)
		assert.Equal(t, map[string]string{"theirs": "yes"}, action.Volume.Annotations, "B1: also where the person wrote the UID")
		assert.Equal(t, reserved.Spec.ClaimRef, action.Volume.Spec.ClaimRef)
	}
	action = (&pair{KnownClaim(), KnownVolume("a", PreBound, VolumeNote(BoundBy, "yes"), VolumeNote("theirs", "yes"))}).next(t)
	assert.Equal(t, map[string]string{"theirs": "yes"}, action.Volume.Annotations, "B1: also where that of an earlier binding was left on it")
}

// TestB5EveryPrefixContinues begins with each number of the four writes made, from each way in which a pair
// comes together, and expects exactly the writes that are left.
func TestB5EveryPrefixContinues(t *testing.T) {
	ways := map[string]func() *pair{
		"C1 found":               func() *pair { return &pair{KnownClaim(), KnownVolume("a")} },
		"C1 found reserved":      func() *pair { return &pair{KnownClaim(), KnownVolume("a", PreBound)} },
		"C1 provisioned":         func() *pair { return &pair{KnownClaim(), KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes"))} },
		"C7 named":               func() *pair { return &pair{KnownClaim(Naming("a")), KnownVolume("a")} },
		"C8 named and reserved":  func() *pair { return &pair{KnownClaim(Naming("a")), KnownVolume("a", PreBound)} },
		"C11 its link was cut":   func() *pair { return &pair{KnownClaim(Naming("a"), ClaimNote(Completed, "yes")), KnownVolume("a")} },
		"C11 it was Lost before": func() *pair { return &pair{KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)), KnownVolume("a")} },
	}
	all := []string{"B1", "B2", "B3", "B4", "C11"}
	for name, make := range ways {
		whole := make().bind(t)
		for made := range whole {
			t.Run(fmt.Sprintf("B5 %s, %d writes made", name, made), func(t *testing.T) {
				p := make()
				for range made {
					p.apply(p.next(t))
				}
				assert.Equal(t, whole[made:], p.bind(t))
				assert.Subset(t, all, whole)
			})
		}
	}
}

func TestTheWritesOfABind(t *testing.T) {
	taken := []VolumeEdit{BoundToClaim, InPhase(corev1.VolumeBound)}
	notes := func(v *corev1.PersistentVolume) {
		v.Status.Message, v.Status.Reason = "it failed", "VolumeFailedDelete"
	}
	size := func(quantity string) string {
		return "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=" + quantity + " status.phase=Bound"
	}
	named := KnownClaim(Naming("a"), ClaimNote(Completed, "yes"))
	with := func(edits ...VolumeEdit) decision.Snapshot {
		return Knowing(KnownVolume("a", append(edits, taken...)...))
	}
	read := func(edits ...VolumeEdit) decision.Snapshot { return Proving(with(edits...), obj.VolumeKey("a")) }
	from := func(phase corev1.PersistentVolumeClaimPhase, edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return KnownClaim(append([]ClaimEdit{Naming("a"), ClaimNote(Completed, "yes"), ClaimPhase(phase)}, edits...)...)
	}
	gold := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }
	hasGold := func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = new("gold") }
	hasSize := func(quantity string) ClaimEdit {
		return func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = Storage(quantity) }
	}
	runDecisions(t, []decisionTest{
		{name: "B1 free: the link is ours", claim: KnownClaim(), known: Knowing(KnownVolume("a")),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "B1 reserved: the link is theirs", claim: KnownClaim(), known: Proving(Knowing(KnownVolume("a", PreBound)), DataKey), expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"},
		{name: "B1 held: nothing to write", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim)), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 from Available", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim)), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 from no phase", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(""))), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 from Released: not by a late cache", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased))), expected: "B2 Read pvc/default/data"},
		{name: "B2 from Failed: likewise", claim: KnownClaim(BoundTo("a")), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed))), expected: "B2 Read pvc/default/data"},
		{name: "B2 from Released where the claim is there", claim: KnownClaim(), known: Proving(Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased))), DataKey),
			expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 message and reason go with the phase", claim: KnownClaim(), known: Proving(Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed), notes)), DataKey),
			expected: "B2 UpdateVolumeStatus pv/a: -status.message status.phase=Bound -status.reason"},
		{name: "B2 they change with the phase only", claim: named, known: with(notes), expected: size("10Gi")},
		{name: "B3 the claim named none", claim: KnownClaim(), known: with(),
			expected: "B3 UpdateClaim pvc/default/data: spec.volumeName=a +annotation " + Completed + " +annotation " + BoundBy},
		{name: "B3 the claim named it", claim: KnownClaim(Naming("a")), known: with(), expected: "B3 UpdateClaim pvc/default/data: +annotation " + Completed},
		{name: "B3 nothing to write", claim: named, known: with(), expected: size("10Gi")},
		{name: "B3 presence counts, not the value", claim: KnownClaim(Naming("a"), ClaimNote(Completed, "")), known: with(), expected: size("10Gi")},

		{name: "B4 from Pending", claim: from(corev1.ClaimPending), known: with(), expected: size("10Gi")},
		{name: "B4 from Lost", claim: from(corev1.ClaimLost), known: read(), expected: size("10Gi")},
		{name: "B4 from no phase", claim: from(""), known: with(), expected: size("10Gi")},
		{name: "B4 more than it asked for", claim: named, known: with(Sized("12Gi")), expected: size("12Gi")},
		{name: "B4 all that the volume has", claim: named,
			known:    with(func(v *corev1.PersistentVolume) { v.Spec.Capacity["example.com/iops"] = Storage("5")["storage"] }),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.example.com/iops=5 status.capacity.storage=10Gi status.phase=Bound"},
		{name: "B4 capacity as it is where storage is the same", claim: from(corev1.ClaimPending, hasSize("10240Mi")), known: with(),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.phase=Bound"},
		{name: "B4 another capacity", claim: from(corev1.ClaimLost, hasSize("1Gi")), known: read(), expected: size("10Gi")},
		{name: "B4 the volume's modes, in its order", claim: named, known: with(Offering(corev1.ReadWriteMany, corev1.ReadWriteOnce)),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteMany ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "B4 the size before a resize", claim: named, known: with(VolumeNote(PreResize, "5Gi")), expected: size("5Gi")},
		{name: "B4 the size before a resize beside another capacity", claim: from(corev1.ClaimLost, hasSize("7Gi")), known: read(VolumeNote(PreResize, "5Gi")), expected: size("5Gi")},
		{name: "B4 the size before a resize, and nothing else that the volume has", claim: named, known: with(VolumeNote(PreResize, "5Gi"), hasIOPS), expected: size("5Gi")},
		{name: "B4 what else the claim has stays where storage is the same", claim: from(corev1.ClaimPending, hasSize("10Gi"), claimHasIOPS), known: with(),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.phase=Bound"},
		{name: "B4 one that does not parse", claim: named, known: with(VolumeNote(PreResize, "much")), expected: size("10Gi")},
		{name: "B4 one that is empty", claim: named, known: with(VolumeNote(PreResize, "")), expected: size("10Gi")},
		{name: "B4 one that would take minutes to parse", claim: named, known: with(VolumeNote(PreResize, "1e-1000000000")), expected: size("10Gi")},
		{name: "B4 attributes class from Pending", claim: from(corev1.ClaimPending), known: with(gold),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.currentVolumeAttributesClassName=gold status.phase=Bound"},
		{name: "B4 attributes class from Lost", claim: from(corev1.ClaimLost), known: read(gold),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.currentVolumeAttributesClassName=gold status.phase=Bound"},
		{name: "B4 no attributes class", claim: from(corev1.ClaimPending, hasGold), known: with(),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi -status.currentVolumeAttributesClassName status.phase=Bound"},
		{name: "B4 the empty attributes class is none", claim: from(corev1.ClaimPending), known: with(func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("") }), expected: size("10Gi")},

		{name: "B4 once Bound, capacity and attributes class are a resizer's", claim: KnownClaim(BoundTo("a"), hasSize("3Gi"), hasGold), known: with(Sized("20Gi"), VolumeNote(PreResize, "5Gi")), expected: "C11 Nothing"},
		{name: "B4 once Bound, the modes still follow", claim: KnownClaim(BoundTo("a"), hasSize("3Gi")), known: with(Sized("20Gi"), Offering(corev1.ReadWriteMany)),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteMany]"},
		{name: "B4 Bound by status alone is completed", claim: KnownClaim(BoundTo("a"), WithoutNote(Completed)), known: with(), expected: "B3 UpdateClaim pvc/default/data: +annotation " + Completed},

		{name: "X7 B4 no capacity: an error before B1", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a", PreBound, unsized)), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no capacity: before B2", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a", BoundToClaim, unsized)), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no capacity: before B4", claim: named, known: with(unsized), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 a negative capacity", claim: named, known: with(Sized("-1")), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no matter once Bound", claim: KnownClaim(BoundTo("a")), known: with(unsized), expected: "C11 Nothing"},
		{name: "X7 B1 a claim without a UID cannot hold a volume", claim: KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "" }), known: Knowing(KnownVolume("a")), fails: "pvc/default/data: metadata.uid"},
	})
}
