package binding_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding"
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

func (p *pair) next(t *testing.T) binding.Action {
	t.Helper()
	action, err := binding.NextForClaim(p.claim, knowing(p.volume, p.claim), binding.Rules{})
	require.NoError(t, err)
	return action
}

// apply puts what an action writes in place.
func (p *pair) apply(action binding.Action) {
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
	action := (&pair{knownClaim(), knownVolume("a")}).next(t)

	assert.Equal(t, &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7",
	}, action.Volume.Spec.ClaimRef, "B1")
	assert.Equal(t, "yes", action.Volume.Annotations[boundBy], "B1")
}

func TestB1KeepsAReserversClaimRef(t *testing.T) {
	reservedIn := knownVolume("a", reserved, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.FieldPath = "theirs" })
	action := (&pair{knownClaim(), reservedIn}).next(t)

	assert.Equal(t, "uid-1", string(action.Volume.Spec.ClaimRef.UID), "B1")
	assert.NotContains(t, action.Volume.Annotations, boundBy, "B1: a person's link stays one (V4)")
}

// TestB5EveryPrefixContinues begins with each number of the four writes made, from each way in which a pair
// comes together, and expects exactly the writes that are left.
func TestB5EveryPrefixContinues(t *testing.T) {
	ways := map[string]func() *pair{
		"C1 found":               func() *pair { return &pair{knownClaim(), knownVolume("a")} },
		"C1 found reserved":      func() *pair { return &pair{knownClaim(), knownVolume("a", reserved)} },
		"C1 provisioned":         func() *pair { return &pair{knownClaim(), knownVolume("a", held, volumeNote(boundBy, "yes"))} },
		"C7 named":               func() *pair { return &pair{knownClaim(naming("a")), knownVolume("a")} },
		"C8 named and reserved":  func() *pair { return &pair{knownClaim(naming("a")), knownVolume("a", reserved)} },
		"C11 its link was cut":   func() *pair { return &pair{knownClaim(naming("a"), claimNote(completed, "yes")), knownVolume("a")} },
		"C11 it was Lost before": func() *pair { return &pair{knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost)), knownVolume("a")} },
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
	taken := []volumeEdit{held, inPhase(corev1.VolumeBound)}
	notes := func(v *corev1.PersistentVolume) {
		v.Status.Message, v.Status.Reason = "it failed", "VolumeFailedDelete"
	}
	size := func(quantity string) string {
		return "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=" + quantity + " status.phase=Bound"
	}
	named := knownClaim(naming("a"), claimNote(completed, "yes"))
	with := func(edits ...volumeEdit) binding.Snapshot {
		return knowing(knownVolume("a", append(edits, taken...)...))
	}
	from := func(phase corev1.PersistentVolumeClaimPhase, edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return knownClaim(append([]claimEdit{naming("a"), claimNote(completed, "yes"), claimPhase(phase)}, edits...)...)
	}
	gold := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }
	hasGold := func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = new("gold") }
	hasSize := func(quantity string) claimEdit {
		return func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = storage(quantity) }
	}
	runDecisions(t, []decision{
		{name: "B1 free: the link is ours", claim: knownClaim(), known: knowing(knownVolume("a")),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "B1 reserved: the link is theirs", claim: knownClaim(), known: knowing(knownVolume("a", reserved)), want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"},
		{name: "B1 held: nothing to write", claim: knownClaim(), known: knowing(knownVolume("a", held)), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 from Available", claim: knownClaim(), known: knowing(knownVolume("a", held)), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 from no phase", claim: knownClaim(), known: knowing(knownVolume("a", held, inPhase(""))), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "B2 message and reason go with the phase", claim: knownClaim(), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeFailed), notes)),
			want: "B2 UpdateVolumeStatus pv/a: -status.message status.phase=Bound -status.reason"},
		{name: "B2 they change with the phase only", claim: named, known: with(notes), want: size("10Gi")},
		{name: "B3 the claim named none", claim: knownClaim(), known: with(),
			want: "B3 UpdateClaim pvc/default/data: spec.volumeName=a +annotation " + completed + " +annotation " + boundBy},
		{name: "B3 the claim named it", claim: knownClaim(naming("a")), known: with(), want: "B3 UpdateClaim pvc/default/data: +annotation " + completed},
		{name: "B3 nothing to write", claim: named, known: with(), want: size("10Gi")},
		{name: "B3 presence counts, not the value", claim: knownClaim(naming("a"), claimNote(completed, "")), known: with(), want: size("10Gi")},

		{name: "B4 from Pending", claim: from(corev1.ClaimPending), known: with(), want: size("10Gi")},
		{name: "B4 from Lost", claim: from(corev1.ClaimLost), known: with(), want: size("10Gi")},
		{name: "B4 from no phase", claim: from(""), known: with(), want: size("10Gi")},
		{name: "B4 more than it asked for", claim: named, known: with(sized("12Gi")), want: size("12Gi")},
		{name: "B4 all that the volume has", claim: named,
			known: with(func(v *corev1.PersistentVolume) { v.Spec.Capacity["example.com/iops"] = storage("5")["storage"] }),
			want:  "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.example.com/iops=5 status.capacity.storage=10Gi status.phase=Bound"},
		{name: "B4 capacity as it is where storage is the same", claim: from(corev1.ClaimPending, hasSize("10240Mi")), known: with(),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.phase=Bound"},
		{name: "B4 another capacity", claim: from(corev1.ClaimLost, hasSize("1Gi")), known: with(), want: size("10Gi")},
		{name: "B4 the volume's modes, in its order", claim: named, known: with(offering(corev1.ReadWriteMany, corev1.ReadWriteOnce)),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteMany ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "B4 the size before a resize", claim: named, known: with(volumeNote(preResize, "5Gi")), want: size("5Gi")},
		{name: "B4 the size before a resize beside another capacity", claim: from(corev1.ClaimLost, hasSize("7Gi")), known: with(volumeNote(preResize, "5Gi")), want: size("5Gi")},
		{name: "B4 the size before a resize, and nothing else that the volume has", claim: named, known: with(volumeNote(preResize, "5Gi"), hasIOPS), want: size("5Gi")},
		{name: "B4 what else the claim has stays where storage is the same", claim: from(corev1.ClaimPending, hasSize("10Gi"), claimHasIOPS), known: with(),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.phase=Bound"},
		{name: "B4 one that does not parse", claim: named, known: with(volumeNote(preResize, "much")), want: size("10Gi")},
		{name: "B4 one that is empty", claim: named, known: with(volumeNote(preResize, "")), want: size("10Gi")},
		{name: "B4 one that would take minutes to parse", claim: named, known: with(volumeNote(preResize, "1e-1000000000")), want: size("10Gi")},
		{name: "B4 attributes class from Pending", claim: from(corev1.ClaimPending), known: with(gold),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.currentVolumeAttributesClassName=gold status.phase=Bound"},
		{name: "B4 attributes class from Lost", claim: from(corev1.ClaimLost), known: with(gold),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.currentVolumeAttributesClassName=gold status.phase=Bound"},
		{name: "B4 no attributes class", claim: from(corev1.ClaimPending, hasGold), known: with(),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi -status.currentVolumeAttributesClassName status.phase=Bound"},
		{name: "B4 the empty attributes class is none", claim: from(corev1.ClaimPending), known: with(func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("") }), want: size("10Gi")},

		{name: "B4 once Bound, capacity and attributes class are a resizer's", claim: knownClaim(boundTo("a"), hasSize("3Gi"), hasGold), known: with(sized("20Gi"), volumeNote(preResize, "5Gi")), want: "C11 Nothing"},
		{name: "B4 once Bound, the modes still follow", claim: knownClaim(boundTo("a"), hasSize("3Gi")), known: with(sized("20Gi"), offering(corev1.ReadWriteMany)),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteMany]"},
		{name: "B4 Bound by status alone is completed", claim: knownClaim(boundTo("a"), withoutNote(completed)), known: with(), want: "B3 UpdateClaim pvc/default/data: +annotation " + completed},

		{name: "X7 B4 no capacity: an error before B1", claim: knownClaim(naming("a")), known: knowing(knownVolume("a", reserved, unsized)), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no capacity: before B2", claim: knownClaim(naming("a")), known: knowing(knownVolume("a", held, unsized)), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no capacity: before B4", claim: named, known: with(unsized), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 a negative capacity", claim: named, known: with(sized("-1")), fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 B4 no matter once Bound", claim: knownClaim(boundTo("a")), known: with(unsized), want: "C11 Nothing"},
		{name: "X7 B1 a claim without a UID cannot hold a volume", claim: knownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "" }), known: knowing(knownVolume("a")), fails: "pvc/default/data: metadata.uid"},
	})
}
