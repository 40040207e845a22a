package decision_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// explainTest is one row of a table: a claim, what else is known, and what must be said of it, as JSON without the
// claim and the message.
type explainTest struct {
	name     string
	claim    *corev1.PersistentVolumeClaim
	known    decision.Snapshot
	options  decision.Options
	expected string
	says     []string
}

func (e explainTest) run(t *testing.T) {
	e.known.Claims = append(e.known.Claims, e.claim)
	claim, known := e.claim.DeepCopy(), CopyOf(e.known)

	got, err := decision.ExplainClaim(e.claim, e.known, Unprotected(e.options))

	require.NoError(t, err)
	assert.Equal(t, DataKey, got.Claim)
	for _, part := range e.says {
		assert.Contains(t, got.String(), part)
	}
	assert.LessOrEqual(t, len(got.String()), 1024)
	assert.Contains(t, got.String(), got.Message)
	got.Message = ""
	text, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, e.complete(), string(text))
	assert.Equal(t, claim, e.claim, "X6")
	assert.Equal(t, known, e.known, "X6")
}

// complete is what is wanted with the fields that are the same in each row.
func (e explainTest) complete() string {
	return `{"claim":"pvc/default/data","message":"",` + e.expected[1:]
}

func TestExplainClaim(t *testing.T) {
	local := ClassOf("local", "kubernetes.io/no-provisioner", WaitsForFirstConsumer)
	fast := ClassOf("fast", "csi.example.com")
	delayedFast := ClassOf("fast", "csi.example.com", WaitsForFirstConsumer)
	hookSet := decision.Options{Hooks: hooks.Names{Provisioners: sets.New("csi.example.com")}}
	none := `,"search":{"volumes":0,"fit":0}`
	for _, row := range []explainTest{
		{name: "C11 bound", claim: KnownClaim(BoundTo("a")), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))),
			expected: `{"state":"Bound","rule":"C11","volume":"a"}`},
		{name: "C1 a volume fits", claim: KnownClaim(), known: Knowing(KnownVolume("a")), expected: `{"state":"Binding","rule":"B1","volume":"a"}`, says: []string{`volume "a"`, "the next write sets the volume's claimRef"}},
		{name: "B3 half bound", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), expected: `{"state":"Binding","rule":"B3","volume":"a"}`},
		{name: "C2 a class that it is to have is taken for its own", claim: KnownClaim(RequestingClass(nil)), known: Knowing(ClassOf("std", "csi.example.com", DefaultClass)),
			expected: `{"state":"AwaitsProvisioner","rule":"P3","class":"std","provisioner":"csi.example.com"` + none + `}`},
		{name: "C2 F1 G2 likewise finalizers", claim: KnownClaim(RequestingClass(nil), ClaimNote(Provisioner, "kubernetes.io/aws-ebs")),
			known: Knowing(ClassOf("std", "kubernetes.io/aws-ebs", DefaultClass)), options: decision.Options{Protection: decision.ProtectionOn},
			expected: `{"state":"AwaitsProvisioner","rule":"P3","class":"std","provisioner":"ebs.csi.aws.com"` + none + `}`},
		{name: "C3 no pod yet", claim: KnownClaim(RequestingClass(new("local"))), known: Knowing(local, KnownVolume("a", OfClass("local"))),
			expected: `{"state":"AwaitsConsumer","rule":"C3","class":"local","search":{"volumes":1,"fit":0,"counts":[{"reason":"WaitForFirstConsumer","volumes":1}],"nearest":{"volume":"a","claimRef":"None",
				"mismatches":[{"reason":"WaitForFirstConsumer","requested":"a node first, as class local is WaitForFirstConsumer","actual":"no node yet"}]}}}`,
			says: []string{"waiting for a pod that uses the claim", "0/1 volumes fit"}},
		{name: "C3 only finished pods, and one that has a node", claim: KnownClaim(RequestingClass(new("local"))),
			known: Knowing(local, PodUsing("done", PodPhase(corev1.PodSucceeded)), PodUsing("runs", Scheduled)), expected: `{"state":"AwaitsConsumer","rule":"C3","class":"local"` + none + `}`},
		{name: "C3 a pod that has no node yet", claim: KnownClaim(RequestingClass(new("local"))), known: Knowing(local, PodUsing("web"), PodUsing("done", PodPhase(corev1.PodFailed))),
			expected: `{"state":"AwaitsScheduling","rule":"C3","class":"local","pods":["web"]` + none + `}`, says: []string{"web"}},
		{name: "C3 P3 a node is chosen: its provisioner is awaited there", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(SelectedNode, "node-a")), known: Knowing(delayedFast),
			expected: `{"state":"AwaitsProvisioner","rule":"P3","class":"fast","provisioner":"csi.example.com","node":"node-a"` + none + `}`, says: []string{`"csi.example.com"`, `"node-a"`}},
		{name: "C4 P3 asked already", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, "csi.example.com"), ClaimNote(BetaProvisioner, "csi.example.com")), known: Knowing(fast),
			expected: `{"state":"AwaitsProvisioner","rule":"P3","class":"fast","provisioner":"csi.example.com"` + none + `}`, says: []string{"waiting for the provisioner"}},
		{name: "P2 a provisioner of ours, though nothing was read live", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, "csi.example.com"), ClaimNote(BetaProvisioner, "csi.example.com")),
			known: Knowing(fast), options: hookSet, expected: `{"state":"AwaitsProvisioner","rule":"P2","class":"fast","provisioner":"csi.example.com"` + none + `}`, says: []string{"waiting for the provisioner"}},
		{name: "P1 the class does not exist", claim: KnownClaim(RequestingClass(new("fast"))), expected: `{"state":"NoProvisioner","rule":"P1","class":"fast"` + none + `}`, says: []string{"does not exist"}},
		{name: "P1 it provisions nothing", claim: KnownClaim(RequestingClass(new("local")), ClaimNote(SelectedNode, "node-a")), known: Knowing(local),
			expected: `{"state":"NoProvisioner","rule":"P1","class":"local"` + none + `}`, says: []string{"provisions none"}},
		{name: "C5 no class", claim: KnownClaim(), known: Knowing(KnownVolume("a", Sized("5Gi"))),
			expected: `{"state":"NoVolumeFits","rule":"C5","search":{"volumes":1,"fit":0,"counts":[{"reason":"TooSmall","volumes":1,"largest":"5Gi"}],
				"nearest":{"volume":"a","claimRef":"None","mismatches":[{"reason":"TooSmall","requested":"10Gi","actual":"5Gi"}]}}}`,
			says: []string{"no volume fits and the claim names no storage class: 0/1 volumes fit: 1 TooSmall (largest 5Gi); a would fit but for its size: 5Gi, the claim requests 10Gi"}},
		{name: "C6 the volume it names is absent", claim: KnownClaim(Naming("a")), expected: `{"state":"AwaitsVolume","rule":"C6","volume":"a"}`},
		{name: "C7 the volume it names does not fit", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a", Sized("5Gi"))),
			expected: `{"state":"VolumeMismatch","rule":"C7","volume":"a","mismatches":[{"reason":"TooSmall","requested":"10Gi","actual":"5Gi"}]}`},
		{name: "C9 L5", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a", RefersToOther)), expected: `{"state":"VolumeTaken","rule":"C9","volume":"a","holder":"pvc/default/other"}`},
		{name: "C9 M2", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other"))),
			expected: `{"state":"VolumeTaken","rule":"C9","volume":"a","holder":"pvc/default/other"}`},
		{name: "C9 M2 two have it", claim: KnownClaim(Naming("a")), known: Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other")), FitClaim(BoundTo("a"), Named("another"))),
			expected: `{"state":"VolumeTaken","rule":"C9","volume":"a"}`, says: []string{"default/another, default/other"}},
		{name: "C11 M2 others are bound to it too", claim: KnownClaim(BoundTo("a")), known: Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other"))),
			expected: `{"state":"VolumeContended","rule":"C11","volume":"a"}`, says: []string{"become Lost: default/other"}},
		{name: "C11 B4 Lost, and its volume is Bound to it again", claim: KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))),
			expected: `{"state":"Binding","rule":"B4","volume":"a"}`, says: []string{`volume "a"`}},
		{name: "C11 M2 being deleted, and so may be the other that is bound to it", claim: KnownClaim(BoundTo("a"), ClaimBeingDeleted),
			known:    Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other"), ClaimBeingDeleted)),
			expected: `{"state":"VolumeContended","rule":"C11","volume":"a"}`, says: []string{"become Lost: default/other"}},
		{name: "C10 absent, as far as is known", claim: KnownClaim(BoundTo("a")), expected: `{"state":"Lost","rule":"C10","volume":"a"}`, says: []string{`"a", which does not exist`}},
		{name: "C10 Lost already: the reason is said again", claim: KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)), expected: `{"state":"Lost","rule":"C10","volume":"a"}`, says: []string{`"a", which does not exist`}},
		{name: "C10 misbound", claim: KnownClaim(BoundTo("a")), known: Knowing(KnownVolume("a", RefersToOther)),
			expected: `{"state":"Lost","rule":"C10","volume":"a","holder":"pvc/default/other"}`, says: []string{"now belongs to"}},
		{name: "C10 it names none", claim: KnownClaim(BoundTo("")), expected: `{"state":"Lost","rule":"C10"}`, says: []string{"names no volume"}},
		{name: "C12 being deleted", claim: KnownClaim(ClaimBeingDeleted, ClaimFinalizers(ClaimProtection, "theirs")), known: Knowing(PodUsing("web", Scheduled), PodUsing("unscheduled")),
			expected: `{"state":"Terminating","rule":"C12","finalizers":["kubernetes.io/pvc-protection","theirs"],"pods":["web"]}`,
			says:     []string{"nothing new is begun for it: finalizers kubernetes.io/pvc-protection, theirs, and the pods that use it: web"}},
		{name: "F2 being deleted, used by none", claim: KnownClaim(ClaimBeingDeleted, BoundTo("a"), ClaimFinalizers(ClaimProtection)), options: decision.Options{Protection: decision.ProtectionOn},
			expected: `{"state":"Terminating","rule":"F2","volume":"a","finalizers":["kubernetes.io/pvc-protection"]}`},
		{name: "P2 being deleted, with storage made for it", claim: KnownClaim(ClaimBeingDeleted, ClaimFinalizers(ProvisioningFinalizer)),
			expected: `{"state":"Terminating","rule":"P2","finalizers":["pvbind.github.io/provisioning"]}`},
	} {
		t.Run(row.name, row.run)
	}
}

func TestExplainClaimThatIsNotStored(t *testing.T) {
	unstored := KnownClaim(OfUID(""))
	got, err := decision.ExplainClaim(unstored, Knowing(KnownVolume("a")), decision.Options{})
	require.NoError(t, err)
	assert.Equal(t, decision.ClaimBinding, got.State)
	assert.Empty(t, unstored.UID, "X6")

	got, err = decision.ExplainClaim(unstored, Knowing(KnownVolume("a", RefersToStale)), decision.Options{})
	require.NoError(t, err)
	assert.Equal(t, decision.ClaimUnmatched, got.State, "L4: the volume is another claim's of that name")
}

func TestExplainClaimErrors(t *testing.T) {
	t.Run("X7 a malformed claim has no explanation", func(t *testing.T) {
		got, err := decision.ExplainClaim(KnownClaim(Requesting("-1")), decision.Snapshot{}, decision.Options{})
		var invalid *obj.InvalidError
		require.True(t, errors.As(err, &invalid))
		assert.Equal(t, decision.Explanation{Claim: DataKey}, got)
	})
	t.Run("C9 an error beside an explanation", func(t *testing.T) {
		got, err := decision.ExplainClaim(KnownClaim(Naming("a"), ClaimNote(BoundBy, "yes")), Knowing(KnownVolume("a", RefersToOther)), decision.Options{})
		require.Error(t, err)
		assert.Equal(t, decision.ClaimVolumeTaken, got.State)
	})
}

// E3: whatever the state of the objects, the explanation is that of the decision, and the numbers are those of the
// search that the decision made.
func FuzzExplainClaim(f *testing.F) {
	AddSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := newRandomState(bytes)
		before := m.copied()
		claim := m.Claims[0]
		got, err := decision.ExplainClaim(claim, m.Snapshot, m.options)
		require.Equal(t, before, m.Snapshot, "X6")
		stored := *claim
		if stored.UID == "" {
			stored.UID = "not stored yet" // it is explained as if it were
		}
		action, failed := decision.NextForClaim(&stored, m.Snapshot, m.options)
		if failed != nil {
			require.Equal(t, failed, err)
			return
		}
		if err != nil {
			return // of the claim as it is to be
		}
		require.NotEmpty(t, got.State)
		require.NotEmpty(t, got.Message)
		if got.State == decision.ClaimBound {
			require.False(t, claimWaits(action), "%s", action)
		}
		if got.Search != nil {
			require.Empty(t, got.Search.Chosen, "E3: %s", got)
			require.Empty(t, claim.Spec.VolumeName)
		}
		if action.Kind == decision.Wait && action.Rule == got.Rule {
			require.Contains(t, action.Why, got.Message, "E3")
		}
	})
}

func claimWaits(action decision.Action) bool {
	return action.Kind == decision.Wait && action.Rule != "P2"
}
