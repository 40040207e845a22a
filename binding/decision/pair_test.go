package decision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// pairTest is a claim and a volume, and what must be said of them.
type pairTest struct {
	name   string
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	others []obj.Object
	shares []string // volumes of the same storage

	expected string // kinds of the violations; "": healthy
	by       string // "Who Kind: the write"
	says     string // part of the reason, or of the risk
}

func (r pairTest) request() decision.PairRequest {
	known := Knowing(r.others...)
	live := []obj.Key{obj.VolumeKey("a"), obj.VolumeKey("b"), DataKey}
	if r.claim != nil {
		known.Claims = append(known.Claims, r.claim)
	}
	if r.volume != nil {
		known.Volumes = append(known.Volumes, r.volume)
	}
	return decision.PairRequest{Claim: r.claim, Volume: r.volume, View: Proving(known, live...), SameStorage: r.shares, Options: Unprotected(decision.Options{})}
}

func (r pairTest) run(t *testing.T) {
	claim, volume := r.claim.DeepCopy(), r.volume.DeepCopy()

	got, err := decision.CheckPair(r.request())

	require.NoError(t, err)
	var kinds []string
	for _, violation := range got.Violations {
		kinds = append(kinds, string(violation.Kind))
		assert.NotEmpty(t, violation.Expected)
		assert.NotEmpty(t, violation.Actual)
		assert.NotContains(t, violation.String(), "\n")
	}
	assert.Equal(t, r.expected, strings.Join(kinds, " "))
	assert.Equal(t, r.expected == "", got.Healthy())
	assert.Equal(t, r.by, r.text(got.Repair))
	assert.Contains(t, got.Repair.Why+"; "+got.Repair.Risk, r.says)
	assert.Equal(t, got.Repair.By == decision.ByPerson, got.Repair.Risk != "", "a person is told the risk, and nobody else")
	assert.Equal(t, claim, r.claim, "X6")
	assert.Equal(t, volume, r.volume, "X6")
	Spoil(got.Repair.Action)
	assert.Equal(t, claim, r.claim, "X6")
	assert.Equal(t, volume, r.volume, "X6")
}

func (r pairTest) text(repair decision.Repair) string {
	text := string(repair.By)
	action := repair.Action
	switch {
	case action.Kind == decision.Nothing:
		return text
	case action.Kind == decision.CreateVolume:
		made := action.Volume
		ref, size := made.Spec.ClaimRef, made.Spec.Capacity[corev1.ResourceStorage]
		return fmt.Sprintf("%s %s: %s/%s %s %s %v %s %s", text, action.Kind, ref.Namespace, ref.Name, ref.UID, size.String(), made.Spec.AccessModes, made.Spec.PersistentVolumeReclaimPolicy, made.Name)
	case action.Volume != nil && action.Writes():
		return text + " " + string(action.Kind) + ": " + bindingtest.Diff(r.volume, action.Volume)
	case action.Claim != nil && action.Writes():
		return text + " " + string(action.Kind) + ": " + bindingtest.Diff(r.claim, action.Claim)
	}
	return text + " " + string(action.Kind) + " " + action.Target().String()
}

var (
	unbornStatus = func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	}
	created    = "Person CreateVolume: default/data uid-1 10Gi [ReadWriteOnce] Retain a"
	repointed  = "Person UpdateVolume: spec.claimRef={default/data uid-1}"
	otherClaim = KnownClaim(Named("other"))
	withBound  = func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append(BoundVolume[:3:3], edits...)...)
	}
)

func TestHealthyPairs(t *testing.T) {
	for _, row := range []pairTest{
		{name: "neither exists"},
		{name: "C11 bound", claim: KnownClaim(BoundTo("a")), volume: withBound()},
		{name: "C5 a claim that waits", claim: KnownClaim()},
		{name: "V1 a free volume", volume: KnownVolume("a")},
		{name: "V1 L2 a reserved volume, its claim still to come", volume: KnownVolume("a", PreBound)},
		{name: "V3 a Released volume", volume: withBound(InPhase(corev1.VolumeReleased))},
		{name: "V3 a Failed volume", volume: withBound(InPhase(corev1.VolumeFailed))},
		{name: "X3 L4 a Released volume, and another claim of the old one's name", claim: KnownClaim(), volume: KnownVolume("a", RefersToStale, InPhase(corev1.VolumeReleased))},
		{name: "L2 a volume reserved for a claim that has another", claim: KnownClaim(BoundTo("b")), volume: KnownVolume("a", PreBound)},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatTheControllerMends(t *testing.T) {
	for _, row := range []pairTest{
		{name: "B1 done, B2 to come", claim: KnownClaim(), volume: KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes")), expected: "HalfBound", by: "Controller UpdateVolumeStatus: status.phase=Bound"},
		{name: "B2 done, B3 to come", claim: KnownClaim(), volume: withBound(), expected: "HalfBound",
			by: "Controller UpdateClaim: spec.volumeName=a +annotation " + Completed + " +annotation " + BoundBy},
		{name: "B3 done, B4 to come", claim: KnownClaim(BoundTo("a"), unbornStatus), volume: withBound(), expected: "HalfBound",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C8 somebody removed bind-completed", claim: KnownClaim(BoundTo("a"), WithoutNote(Completed)), volume: withBound(), expected: "HalfBound", by: "Controller UpdateClaim: +annotation " + Completed},
		{name: "B2 the phase of the volume alone is wrong", claim: KnownClaim(BoundTo("a")), volume: withBound(InPhase(corev1.VolumeAvailable)), expected: "HalfBound", by: "Controller UpdateVolumeStatus: status.phase=Bound"},
		{name: "C11 X4 Lost, and its volume is there", claim: KnownClaim(BoundTo("a"), Lost), volume: withBound(), expected: "LostButBound",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C11 M2 claimRef dropped", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", InPhase(corev1.VolumeBound)), expected: "ClaimRefDropped",
			by: "Controller UpdateVolume: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C1 L2 reserved, and not begun", claim: KnownClaim(), volume: KnownVolume("a", PreBound), expected: "Unbound", by: "Controller UpdateVolume: spec.claimRef={default/data uid-1}"},
		{name: "C8 L2 reserved and named", claim: KnownClaim(Naming("a")), volume: KnownVolume("a", PreBound), expected: "Unbound", by: "Controller UpdateVolume: spec.claimRef={default/data uid-1}"},
		{name: "C7 named and free", claim: KnownClaim(Naming("a")), volume: KnownVolume("a"), expected: "Unbound",
			by: "Controller UpdateVolume: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "V4 held by a claim that has another", claim: KnownClaim(BoundTo("b")), volume: withBound(), others: []obj.Object{KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound))},
			expected: "Unneeded", by: "Controller UpdateVolume: spec.claimRef={default/data} -annotation " + BoundBy},
		{name: "V2 V3 the same, provisioned for it", claim: KnownClaim(BoundTo("b")), volume: withBound(InPhase(corev1.VolumePending), DeletedPolicy, VolumeNote(ProvisionedBy, "csi.example.com")),
			others: []obj.Object{KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound))}, expected: "Unneeded", by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V3 its claim is gone", volume: withBound(), expected: "WrongPhase", by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V3 L4 another claim has its name", claim: KnownClaim(), volume: KnownVolume("a", RefersToStale, InPhase(corev1.VolumeBound)), expected: "WrongPhase",
			by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V1 nobody has it", volume: KnownVolume("a", InPhase(corev1.VolumePending)), expected: "WrongPhase", by: "Controller UpdateVolumeStatus: status.phase=Available"},
		{name: "F2 and being deleted", claim: KnownClaim(BoundTo("a"), ClaimBeingDeleted, unbornStatus, ClaimFinalizers(ClaimProtection)), volume: withBound(), expected: "HalfBound ClaimTerminating",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatAPersonCanMend(t *testing.T) {
	for _, row := range []pairTest{
		{name: "L4 restored from a backup with another UID", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", RefersToStale, InPhase(corev1.VolumeBound)),
			expected: "UIDDiffers", by: repointed, says: "UID uid-0"},
		{name: "L4 the same, Lost and Released", claim: KnownClaim(BoundTo("a"), Lost), volume: KnownVolume("a", RefersToStale, InPhase(corev1.VolumeReleased)), expected: "UIDDiffers", by: repointed, says: "the claim names"},
		{name: "L4 the same, never bound: it only names the volume", claim: KnownClaim(Naming("a")), volume: KnownVolume("a", RefersToStale, InPhase(corev1.VolumeReleased)), expected: "UIDDiffers", by: repointed},
		{name: "L4 policy Delete, nothing begun yet", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", RefersToStale, DeletedPolicy, InPhase(corev1.VolumeBound)), expected: "UIDDiffers", by: repointed},
		{name: "C11 M2 claimRef dropped, and another claim is bound too", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", InPhase(corev1.VolumeBound)), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))},
			expected: "VolumeContended", by: repointed, says: "become Lost, and if the data is theirs, this one gets it: pvc/default/other"},
		{name: "C11 M2 the same, and the claim has been resized", claim: KnownClaim(BoundTo("a"), Requesting("20Gi")), volume: KnownVolume("a"), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))},
			expected: "VolumeContended", by: repointed},
		{name: "C11 the UID was cleared", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", PreBound), expected: "UIDCleared", by: repointed, says: "another's data"},
		{name: "C10 the volume is gone", claim: KnownClaim(BoundTo("a"), Lost), expected: "VolumeAbsent", by: created, says: `exactly the name "a", and claimRef to default/data with UID uid-1`},
		{name: "C6 it never was", claim: KnownClaim(Naming("a")), expected: "VolumeAbsent", by: created, says: "if it is still there"},
		{name: "C10 what the claim has counts, where it has more than it asked for", claim: KnownClaim(BoundTo("a"), Requesting("1Gi")), expected: "VolumeAbsent", by: created, says: "at least 10Gi"},
		{name: "V2 held, and of another volume mode", claim: KnownClaim(), volume: withBound(BlockMode), expected: "Incompatible", by: "Person UpdateVolume: -spec.claimRef -annotation " + BoundBy, says: "never bound"},
		{name: "V4 a person's link is cleared, not dropped", claim: KnownClaim(), volume: KnownVolume("a", BoundToClaim, Sized("1Gi")), expected: "Incompatible", by: "Person UpdateVolume: spec.claimRef={default/data}"},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatNoWriteMendsSafely(t *testing.T) {
	gone := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append([]VolumeEdit{RefersToStale, InPhase(corev1.VolumeBound)}, edits...)...)
	}
	for _, row := range []pairTest{
		{name: "L4 it is being deleted", claim: KnownClaim(BoundTo("a")), volume: gone(BeingDeleted), expected: "UIDDiffers VolumeTerminating", by: "Nobody", says: "being deleted"},
		{name: "L4 the claim is", claim: KnownClaim(BoundTo("a"), ClaimBeingDeleted), volume: gone(), expected: "UIDDiffers ClaimTerminating", by: "Nobody", says: "being deleted"},
		{name: "L4 it does not fit", claim: KnownClaim(BoundTo("a")), volume: gone(Sized("1Gi")), expected: "UIDDiffers", by: "Nobody", says: "TooSmall"},
		{name: "L4 its storage is another volume's too", claim: KnownClaim(BoundTo("a")), volume: gone(), shares: []string{"b"}, expected: "UIDDiffers", by: "Nobody", says: "also that of b"},
		{name: "L4 another claim was bound to it", claim: KnownClaim(Naming("a")), volume: gone(), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))}, expected: "UIDDiffers", by: "Nobody", says: "default/other"},
		{name: "L4 X3 the claim whose data it is exists, and a slip in claimRef hides it", claim: KnownClaim(Naming("a")), volume: gone(), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"), Lost, func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-0" })},
			expected: "UIDDiffers", by: "Nobody", says: "default/other"},
		{name: "L4 its storage may be on the way out", claim: KnownClaim(BoundTo("a")), volume: gone(DeletedPolicy, InPhase(corev1.VolumeReleased)), expected: "UIDDiffers", by: "Nobody", says: "set the policy to Retain first"},
		{name: "C10 another claim has the volume", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", RefersToOther), others: []obj.Object{otherClaim}, expected: "VolumeTaken", by: "Nobody", says: "Retain on every volume whose claimRef has UID uid-1, then delete the claim and create it anew"},
		{name: "C9 the same, never bound", claim: KnownClaim(Naming("a")), volume: KnownVolume("a", RefersToOther), expected: "VolumeTaken", by: "Nobody"},
		{name: "C11 M2 claimRef dropped, two claims are bound, and it is being deleted", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", BeingDeleted), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))},
			expected: "VolumeContended VolumeTerminating", by: "Nobody", says: "being deleted"},
		{name: "C11 M2 the same, the storage is another volume's too", claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a"), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))}, shares: []string{"b"},
			expected: "VolumeContended", by: "Nobody", says: "the storage is also that of b"},
		{name: "C9 M2 the owner has it, and this one is forged", claim: KnownClaim(Naming("a"), ClaimNote(Completed, "yes")), volume: KnownVolume("a"), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))}, expected: "VolumeTaken", by: "Nobody"},
		{name: "C9 M2 two owners have it", claim: KnownClaim(Naming("a")), volume: KnownVolume("a"), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a")), KnownClaim(Named("another"), BoundTo("a"))}, expected: "VolumeTaken", by: "Nobody"},
		{name: "C9 M2 the owner has it", claim: KnownClaim(Naming("a")), volume: KnownVolume("a"), others: []obj.Object{KnownClaim(Named("other"), BoundTo("a"))}, expected: "VolumeTaken", by: "Nobody"},
		{name: "C10 no name", claim: KnownClaim(BoundTo("")), expected: "VolumeAbsent", by: "Nobody", says: "spec.volumeName to the name of the one with the claim's data"},
		{name: "C12 the volume is gone, and the claim goes", claim: KnownClaim(Naming("a"), ClaimBeingDeleted, ClaimFinalizers("theirs")), expected: "VolumeAbsent ClaimTerminating", by: "Nobody", says: "finalizers theirs"},
		{name: "C10 no name, though the volume is known", claim: KnownClaim(BoundTo("")), volume: withBound(), expected: "VolumeAbsent", by: "Nobody"},
		{name: "C7 it does not fit", claim: KnownClaim(Naming("a")), volume: KnownVolume("a", Sized("1Gi")), expected: "Incompatible", by: "Nobody", says: "TooSmall"},
		{name: "M12 reserved, and does not fit", claim: KnownClaim(), volume: KnownVolume("a", PreBound, Sized("1Gi")), expected: "Incompatible", by: "Nobody", says: "no volume fits"},
		{name: "F2 pods use the claim", claim: KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(ClaimProtection)), volume: withBound(), others: []obj.Object{PodUsing("web", Scheduled)},
			expected: "ClaimTerminating", by: "Nobody", says: "kubernetes.io/pvc-protection, and the pods that use it: web"},
		{name: "F3 a finalizer of others", volume: withBound(BeingDeleted, InPhase(corev1.VolumeReleased), VolumeFinalizers("theirs")), expected: "VolumeTerminating", by: "Nobody", says: "theirs"},
		{name: "R3 and it is attached", volume: withBound(BeingDeleted, InPhase(corev1.VolumeReleased), VolumeFinalizers("theirs")), others: []obj.Object{AttachedTo("n2"), AttachedTo("n1")},
			expected: "VolumeTerminating", by: "Nobody", says: "theirs, and attached to node n1, n2"},
		{name: "L5 unrelated", claim: KnownClaim(), volume: KnownVolume("a"), expected: "Unrelated", by: "Nobody"},
	} {
		t.Run(row.name, row.run)
	}
}

// F2: a pod without a node does not use the claim that it names, and does not keep it.
func TestPairKeptByPodsThatUseTheClaim(t *testing.T) {
	claim := KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(ClaimProtection, "theirs"))
	got, err := decision.CheckPair(pairTest{claim: claim, volume: withBound(), others: []obj.Object{PodUsing("unscheduled")}}.request())
	require.NoError(t, err)
	require.Len(t, got.Violations, 1)
	assert.Equal(t, "finalizers kubernetes.io/pvc-protection, theirs", got.Violations[0].Actual)
}

// Nothing is released on a cache miss: where the proof is lacking, the step is to read.
func TestPairAbsenceNeedsProof(t *testing.T) {
	request := pairTest{volume: withBound()}.request()
	request.View = Knowing(request.Volume)
	got, err := decision.CheckPair(request)
	require.NoError(t, err)
	assert.Equal(t, decision.ByController, got.Repair.By)
	assert.Equal(t, "V3 Read pvc/default/data", strings.SplitN(got.Repair.Action.String(), ":", 2)[0])
}

func TestPairErrors(t *testing.T) {
	got, err := decision.CheckPair(pairTest{claim: KnownClaim(BoundTo("a"), Requesting("-1")), volume: KnownVolume("a", RefersToStale)}.request())
	var invalid *obj.InvalidError
	require.True(t, errors.As(err, &invalid), "X7")
	assert.Len(t, got.Violations, 1)
	assert.Zero(t, got.Repair)
}

func TestPairAsJSON(t *testing.T) {
	got, err := decision.CheckPair(pairTest{claim: KnownClaim(BoundTo("a")), volume: KnownVolume("a", RefersToStale)}.request())
	require.NoError(t, err)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	var read struct {
		Claim, Volume string
		Violations    []map[string]string
		Repair        struct {
			By, Why, Risk string
			Step          struct {
				Kind, Rule, On string
				Object         struct {
					APIVersion, Kind string
					Metadata         struct{ Name, ResourceVersion string }
					Spec             struct{ ClaimRef struct{ UID string } }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, "pvc/default/data pv/a", read.Claim+" "+read.Volume)
	assert.Equal(t, []map[string]string{{"violation": "UIDDiffers", "expected": "claimRef.uid uid-1", "actual": "uid-0"}}, read.Violations)
	assert.Equal(t, "Person UpdateVolume L4 pv/a", strings.Join([]string{read.Repair.By, read.Repair.Step.Kind, read.Repair.Step.Rule, read.Repair.Step.On}, " "))
	assert.Equal(t, "v1 PersistentVolume a 8 uid-1", strings.Join([]string{read.Repair.Step.Object.APIVersion, read.Repair.Step.Object.Kind,
		read.Repair.Step.Object.Metadata.Name, read.Repair.Step.Object.Metadata.ResourceVersion, read.Repair.Step.Object.Spec.ClaimRef.UID}, " "))

	healthy, err := json.Marshal(decision.PairReport{Claim: DataKey})
	require.NoError(t, err)
	assert.JSONEq(t, `{"claim":"pvc/default/data"}`, string(healthy))
}
