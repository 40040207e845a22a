package binding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// pairRow is a claim and a volume, and what must be said of them.
type pairRow struct {
	name   string
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	others []obj.Object
	shares []string // volumes of the same storage

	want string // kinds of the violations; "": healthy
	by   string // "Who Kind: the write"
	says string // part of the reason, or of the risk
}

func (r pairRow) request() binding.PairRequest {
	known := knowing(r.others...)
	live := []obj.Key{obj.VolumeKey("a"), obj.VolumeKey("b"), dataKey}
	if r.claim != nil {
		known.Claims = append(known.Claims, r.claim)
	}
	if r.volume != nil {
		known.Volumes = append(known.Volumes, r.volume)
	}
	return binding.PairRequest{Claim: r.claim, Volume: r.volume, View: proving(known, live...), SameStorage: r.shares}
}

func (r pairRow) run(t *testing.T) {
	claim, volume := r.claim.DeepCopy(), r.volume.DeepCopy()

	got, err := binding.CheckPair(r.request())

	require.NoError(t, err)
	var kinds []string
	for _, violation := range got.Violations {
		kinds = append(kinds, string(violation.Kind))
		assert.NotEmpty(t, violation.Wants)
		assert.NotEmpty(t, violation.Has)
		assert.NotContains(t, violation.String(), "\n")
	}
	assert.Equal(t, r.want, strings.Join(kinds, " "))
	assert.Equal(t, r.want == "", got.Healthy())
	assert.Equal(t, r.by, r.text(got.Repair))
	assert.Contains(t, got.Repair.Why+"; "+got.Repair.Risk, r.says)
	assert.Equal(t, got.Repair.By == binding.ByPerson, got.Repair.Risk != "", "a person is told the risk, and nobody else")
	assert.Equal(t, claim, r.claim, "X6")
	assert.Equal(t, volume, r.volume, "X6")
	spoil(got.Repair.Action)
	assert.Equal(t, claim, r.claim, "X6")
	assert.Equal(t, volume, r.volume, "X6")
}

func (r pairRow) text(repair binding.Repair) string {
	text := string(repair.By)
	action := repair.Action
	switch {
	case action.Kind == binding.Nothing:
		return text
	case action.Kind == binding.CreateVolume:
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
	boundVolume = []volumeEdit{held, volumeNote(boundBy, "yes"), inPhase(corev1.VolumeBound)}
	blockMode   = func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	lost        = func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
	}
	unbornStatus = func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	}
	created    = "Person CreateVolume: default/data uid-1 10Gi [ReadWriteOnce] Retain a"
	repointed  = "Person UpdateVolume: spec.claimRef={default/data uid-1}"
	otherClaim = knownClaim(named("other"))
	withBound  = func(edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append(boundVolume[:3:3], edits...)...)
	}
	deletedPolicy = withPolicy(corev1.PersistentVolumeReclaimDelete)
)

func TestHealthyPairs(t *testing.T) {
	for _, row := range []pairRow{
		{name: "neither exists"},
		{name: "C11 bound", claim: knownClaim(boundTo("a")), volume: withBound()},
		{name: "C5 a claim that waits", claim: knownClaim()},
		{name: "V1 a free volume", volume: knownVolume("a")},
		{name: "V1 L2 a reserved volume, its claim still to come", volume: knownVolume("a", reserved)},
		{name: "V3 a Released volume", volume: withBound(inPhase(corev1.VolumeReleased))},
		{name: "V3 a Failed volume", volume: withBound(inPhase(corev1.VolumeFailed))},
		{name: "X3 L4 a Released volume, and another claim of the old one's name", claim: knownClaim(), volume: knownVolume("a", refersToGone, inPhase(corev1.VolumeReleased))},
		{name: "L2 a volume reserved for a claim that has another", claim: knownClaim(boundTo("b")), volume: knownVolume("a", reserved)},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatTheControllerMends(t *testing.T) {
	for _, row := range []pairRow{
		{name: "B1 done, B2 to come", claim: knownClaim(), volume: knownVolume("a", held, volumeNote(boundBy, "yes")), want: "HalfBound", by: "Controller UpdateVolumeStatus: status.phase=Bound"},
		{name: "B2 done, B3 to come", claim: knownClaim(), volume: withBound(), want: "HalfBound",
			by: "Controller UpdateClaim: spec.volumeName=a +annotation " + completed + " +annotation " + boundBy},
		{name: "B3 done, B4 to come", claim: knownClaim(boundTo("a"), unbornStatus), volume: withBound(), want: "HalfBound",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C8 somebody removed bind-completed", claim: knownClaim(boundTo("a"), withoutNote(completed)), volume: withBound(), want: "HalfBound", by: "Controller UpdateClaim: +annotation " + completed},
		{name: "B2 the phase of the volume alone is wrong", claim: knownClaim(boundTo("a")), volume: withBound(inPhase(corev1.VolumeAvailable)), want: "HalfBound", by: "Controller UpdateVolumeStatus: status.phase=Bound"},
		{name: "C11 X4 Lost, and its volume is there", claim: knownClaim(boundTo("a"), lost), volume: withBound(), want: "LostThoughThere",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C11 M2 claimRef dropped", claim: knownClaim(boundTo("a")), volume: knownVolume("a", inPhase(corev1.VolumeBound)), want: "ClaimRefDropped",
			by: "Controller UpdateVolume: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "C1 L2 reserved, and not begun", claim: knownClaim(), volume: knownVolume("a", reserved), want: "Unbound", by: "Controller UpdateVolume: spec.claimRef={default/data uid-1}"},
		{name: "C8 L2 reserved and named", claim: knownClaim(naming("a")), volume: knownVolume("a", reserved), want: "Unbound", by: "Controller UpdateVolume: spec.claimRef={default/data uid-1}"},
		{name: "C7 named and free", claim: knownClaim(naming("a")), volume: knownVolume("a"), want: "Unbound",
			by: "Controller UpdateVolume: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "V4 held by a claim that has another", claim: knownClaim(boundTo("b")), volume: withBound(), others: []obj.Object{knownVolume("b", held, inPhase(corev1.VolumeBound))},
			want: "Surplus", by: "Controller UpdateVolume: -spec.claimRef -annotation " + boundBy},
		{name: "V2 V3 the same, provisioned for it", claim: knownClaim(boundTo("b")), volume: withBound(deletedPolicy, volumeNote(provisionedBy, "csi.example.com")),
			others: []obj.Object{knownVolume("b", held, inPhase(corev1.VolumeBound))}, want: "Surplus", by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V3 its claim is gone", volume: withBound(), want: "WrongPhase", by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V3 L4 another claim has its name", claim: knownClaim(), volume: knownVolume("a", refersToGone, inPhase(corev1.VolumeBound)), want: "WrongPhase",
			by: "Controller UpdateVolumeStatus: status.phase=Released"},
		{name: "V1 nobody has it", volume: knownVolume("a", inPhase(corev1.VolumePending)), want: "WrongPhase", by: "Controller UpdateVolumeStatus: status.phase=Available"},
		{name: "F2 and being deleted", claim: knownClaim(boundTo("a"), claimBeingDeleted, unbornStatus, claimFinalizers(claimProtection)), volume: withBound(), want: "HalfBound ClaimTerminating",
			by: "Controller UpdateClaimStatus: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatAPersonCanMend(t *testing.T) {
	for _, row := range []pairRow{
		{name: "L4 restored from a backup with another UID", claim: knownClaim(boundTo("a")), volume: knownVolume("a", refersToGone, inPhase(corev1.VolumeBound)),
			want: "UIDDiffers", by: repointed, says: "UID uid-0"},
		{name: "L4 the same, Lost and Released", claim: knownClaim(boundTo("a"), lost), volume: knownVolume("a", refersToGone, inPhase(corev1.VolumeReleased)), want: "UIDDiffers", by: repointed, says: "by name"},
		{name: "L4 the same, never bound: it only names the volume", claim: knownClaim(naming("a")), volume: knownVolume("a", refersToGone, inPhase(corev1.VolumeReleased)), want: "UIDDiffers", by: repointed},
		{name: "L4 policy Delete, nothing begun yet", claim: knownClaim(boundTo("a")), volume: knownVolume("a", refersToGone, deletedPolicy, inPhase(corev1.VolumeBound)), want: "UIDDiffers", by: repointed},
		{name: "C11 M2 claimRef dropped, and another claim is bound too", claim: knownClaim(boundTo("a")), volume: knownVolume("a", inPhase(corev1.VolumeBound)), others: []obj.Object{knownClaim(named("other"), boundTo("a"))},
			want: "VolumeContended", by: repointed, says: "become Lost, and if the data is theirs, this one gets it: pvc/default/other"},
		{name: "C11 M2 the same, and the claim has been resized", claim: knownClaim(boundTo("a"), asking("20Gi")), volume: knownVolume("a"), others: []obj.Object{knownClaim(named("other"), boundTo("a"))},
			want: "VolumeContended", by: repointed},
		{name: "C11 the UID was cleared", claim: knownClaim(boundTo("a")), volume: knownVolume("a", reserved), want: "UIDCleared", by: repointed, says: "another's data"},
		{name: "C10 the volume is gone", claim: knownClaim(boundTo("a"), lost), want: "VolumeAbsent", by: created, says: `exactly the name "a", and claimRef to default/data with UID uid-1`},
		{name: "C6 it never was", claim: knownClaim(naming("a")), want: "VolumeAbsent", by: created, says: "if it is still there"},
		{name: "C10 what the claim has counts, where it has more than it asked for", claim: knownClaim(boundTo("a"), asking("1Gi")), want: "VolumeAbsent", by: created, says: "at least 10Gi"},
		{name: "V2 held, and of another volume mode", claim: knownClaim(), volume: withBound(blockMode), want: "Misfit", by: "Person UpdateVolume: -spec.claimRef -annotation " + boundBy, says: "never bound"},
		{name: "V4 a person's link is cleared, not dropped", claim: knownClaim(), volume: knownVolume("a", held, sized("1Gi")), want: "Misfit", by: "Person UpdateVolume: spec.claimRef={default/data}"},
	} {
		t.Run(row.name, row.run)
	}
}

func TestPairsThatNoWriteMendsSafely(t *testing.T) {
	gone := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append([]volumeEdit{refersToGone, inPhase(corev1.VolumeBound)}, edits...)...)
	}
	for _, row := range []pairRow{
		{name: "L4 it is being deleted", claim: knownClaim(boundTo("a")), volume: gone(beingDeleted), want: "UIDDiffers VolumeTerminating", by: "Nobody", says: "being deleted"},
		{name: "L4 the claim is", claim: knownClaim(boundTo("a"), claimBeingDeleted), volume: gone(), want: "UIDDiffers ClaimTerminating", by: "Nobody", says: "being deleted"},
		{name: "L4 it does not fit", claim: knownClaim(boundTo("a")), volume: gone(sized("1Gi")), want: "UIDDiffers", by: "Nobody", says: "TooSmall"},
		{name: "L4 its storage is another volume's too", claim: knownClaim(boundTo("a")), volume: gone(), shares: []string{"b"}, want: "UIDDiffers", by: "Nobody", says: "also that of b"},
		{name: "L4 another claim was bound to it", claim: knownClaim(naming("a")), volume: gone(), others: []obj.Object{knownClaim(named("other"), boundTo("a"))}, want: "UIDDiffers", by: "Nobody", says: "default/other"},
		{name: "L4 its storage may be on the way out", claim: knownClaim(boundTo("a")), volume: gone(deletedPolicy, inPhase(corev1.VolumeReleased)), want: "UIDDiffers", by: "Nobody", says: "set the policy to Retain first"},
		{name: "C10 another claim has the volume", claim: knownClaim(boundTo("a")), volume: knownVolume("a", refersToOther), others: []obj.Object{otherClaim}, want: "VolumeTaken", by: "Nobody", says: "Retain on every volume whose claimRef has UID uid-1, then delete the claim and create it anew"},
		{name: "C9 the same, never bound", claim: knownClaim(naming("a")), volume: knownVolume("a", refersToOther), want: "VolumeTaken", by: "Nobody"},
		{name: "C11 M2 claimRef dropped, two claims are bound, and it is being deleted", claim: knownClaim(boundTo("a")), volume: knownVolume("a", beingDeleted), others: []obj.Object{knownClaim(named("other"), boundTo("a"))},
			want: "VolumeContended VolumeTerminating", by: "Nobody", says: "being deleted"},
		{name: "C11 M2 the same, the storage is another volume's too", claim: knownClaim(boundTo("a")), volume: knownVolume("a"), others: []obj.Object{knownClaim(named("other"), boundTo("a"))}, shares: []string{"b"},
			want: "VolumeContended", by: "Nobody", says: "the storage is also that of b"},
		{name: "C9 M2 the owner has it, and this one is forged", claim: knownClaim(naming("a"), claimNote(completed, "yes")), volume: knownVolume("a"), others: []obj.Object{knownClaim(named("other"), boundTo("a"))}, want: "VolumeTaken", by: "Nobody"},
		{name: "C9 M2 two owners have it", claim: knownClaim(naming("a")), volume: knownVolume("a"), others: []obj.Object{knownClaim(named("other"), boundTo("a")), knownClaim(named("another"), boundTo("a"))}, want: "VolumeTaken", by: "Nobody"},
		{name: "C9 M2 the owner has it", claim: knownClaim(naming("a")), volume: knownVolume("a"), others: []obj.Object{knownClaim(named("other"), boundTo("a"))}, want: "VolumeTaken", by: "Nobody"},
		{name: "C10 no name", claim: knownClaim(boundTo("")), want: "VolumeAbsent", by: "Nobody", says: "spec.volumeName to the name of the one with the claim's data"},
		{name: "C12 the volume is gone, and the claim goes", claim: knownClaim(naming("a"), claimBeingDeleted, claimFinalizers("theirs")), want: "VolumeAbsent ClaimTerminating", by: "Nobody", says: "finalizers theirs"},
		{name: "C10 no name, though the volume is known", claim: knownClaim(boundTo("")), volume: withBound(), want: "VolumeAbsent", by: "Nobody"},
		{name: "C7 it does not fit", claim: knownClaim(naming("a")), volume: knownVolume("a", sized("1Gi")), want: "Misfit", by: "Nobody", says: "TooSmall"},
		{name: "M12 reserved, and does not fit", claim: knownClaim(), volume: knownVolume("a", reserved, sized("1Gi")), want: "Misfit", by: "Nobody", says: "no volume fits"},
		{name: "F2 pods use the claim", claim: knownClaim(boundTo("a"), claimBeingDeleted, claimFinalizers(claimProtection)), volume: withBound(), others: []obj.Object{podUsing("web", scheduled)},
			want: "ClaimTerminating", by: "Nobody", says: "kubernetes.io/pvc-protection, and the pods that use it: web"},
		{name: "F3 a finalizer of others", volume: withBound(beingDeleted, inPhase(corev1.VolumeReleased), volumeFinalizers("theirs")), want: "VolumeTerminating", by: "Nobody", says: "theirs"},
		{name: "R3 and it is attached", volume: withBound(beingDeleted, inPhase(corev1.VolumeReleased), volumeFinalizers("theirs")), others: []obj.Object{attachedTo("n2"), attachedTo("n1")},
			want: "VolumeTerminating", by: "Nobody", says: "theirs, and attached to node n1, n2"},
		{name: "L5 unrelated", claim: knownClaim(), volume: knownVolume("a"), want: "Unrelated", by: "Nobody"},
	} {
		t.Run(row.name, row.run)
	}
}

// F2: a pod without a node does not use the claim that it names, and does not keep it.
func TestPairKeptByPodsThatUseTheClaim(t *testing.T) {
	claim := knownClaim(boundTo("a"), claimBeingDeleted, claimFinalizers(claimProtection, "theirs"))
	got, err := binding.CheckPair(pairRow{claim: claim, volume: withBound(), others: []obj.Object{podUsing("unscheduled")}}.request())
	require.NoError(t, err)
	require.Len(t, got.Violations, 1)
	assert.Equal(t, "finalizers kubernetes.io/pvc-protection, theirs", got.Violations[0].Has)
}

// Nothing is released on a cache miss: where the proof is lacking, the step is to read.
func TestPairAbsenceNeedsProof(t *testing.T) {
	request := pairRow{volume: withBound()}.request()
	request.View = knowing(request.Volume)
	got, err := binding.CheckPair(request)
	require.NoError(t, err)
	assert.Equal(t, binding.ByController, got.Repair.By)
	assert.Equal(t, "V3 Read pvc/default/data", strings.SplitN(got.Repair.Action.String(), ":", 2)[0])
}

func TestPairErrors(t *testing.T) {
	got, err := binding.CheckPair(pairRow{claim: knownClaim(boundTo("a"), asking("-1")), volume: knownVolume("a", refersToGone)}.request())
	var invalid *obj.InvalidError
	require.True(t, errors.As(err, &invalid), "X7")
	assert.Len(t, got.Violations, 1)
	assert.Zero(t, got.Repair)
}

func TestPairAsJSON(t *testing.T) {
	got, err := binding.CheckPair(pairRow{claim: knownClaim(boundTo("a")), volume: knownVolume("a", refersToGone)}.request())
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
	assert.Equal(t, []map[string]string{{"violation": "UIDDiffers", "wants": "claimRef.uid uid-1", "has": "uid-0"}}, read.Violations)
	assert.Equal(t, "Person UpdateVolume L4 pv/a", strings.Join([]string{read.Repair.By, read.Repair.Step.Kind, read.Repair.Step.Rule, read.Repair.Step.On}, " "))
	assert.Equal(t, "v1 PersistentVolume a 8 uid-1", strings.Join([]string{read.Repair.Step.Object.APIVersion, read.Repair.Step.Object.Kind,
		read.Repair.Step.Object.Metadata.Name, read.Repair.Step.Object.Metadata.ResourceVersion, read.Repair.Step.Object.Spec.ClaimRef.UID}, " "))

	healthy, err := json.Marshal(binding.PairReport{Claim: dataKey})
	require.NoError(t, err)
	assert.JSONEq(t, `{"claim":"pvc/default/data"}`, string(healthy))
}
