package binding_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// explained is one row of a table: a claim, what else is known, and what must be said of it, as JSON without the
// claim and the message.
type explained struct {
	name  string
	claim *corev1.PersistentVolumeClaim
	known binding.Snapshot
	rules binding.Rules
	want  string
	says  []string
}

func (e explained) run(t *testing.T) {
	e.known.Claims = append(e.known.Claims, e.claim)
	claim, known := e.claim.DeepCopy(), copyOf(e.known)

	got, err := binding.ExplainClaim(e.claim, e.known, e.rules)

	require.NoError(t, err)
	assert.Equal(t, dataKey, got.Claim)
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
func (e explained) complete() string {
	return `{"claim":"pvc/default/data","message":"",` + e.want[1:]
}

func TestExplainClaim(t *testing.T) {
	local := classOf("local", "kubernetes.io/no-provisioner", delayedClass)
	fast := classOf("fast", "csi.example.com")
	delayedFast := classOf("fast", "csi.example.com", delayedClass)
	hooks := binding.Rules{Hooks: binding.HookNames{Provisioners: sets.New("csi.example.com")}}
	none := `,"search":{"volumes":0,"fit":0}`
	for _, row := range []explained{
		{name: "C11 bound", claim: knownClaim(boundTo("a")), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))),
			want: `{"state":"Bound","rule":"C11","volume":"a"}`},
		{name: "C1 a volume fits", claim: knownClaim(), known: knowing(knownVolume("a")), want: `{"state":"Binding","rule":"B1","volume":"a"}`, says: []string{`volume "a"`, "B1 is the next"}},
		{name: "B3 half bound", claim: knownClaim(), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))), want: `{"state":"Binding","rule":"B3","volume":"a"}`},
		{name: "C2 a class that it is to have is taken for its own", claim: knownClaim(askingClass(nil)), known: knowing(classOf("std", "csi.example.com", defaultClass)),
			want: `{"state":"AwaitsProvisioner","rule":"P3","class":"std","provisioner":"csi.example.com"` + none + `}`},
		{name: "C2 F1 G2 likewise finalizers", claim: knownClaim(askingClass(nil), claimNote(provisioner, "kubernetes.io/aws-ebs")),
			known: knowing(classOf("std", "kubernetes.io/aws-ebs", defaultClass)), rules: binding.Rules{Protection: binding.ProtectionOn},
			want: `{"state":"AwaitsProvisioner","rule":"P3","class":"std","provisioner":"ebs.csi.aws.com"` + none + `}`},
		{name: "C3 no pod yet", claim: knownClaim(askingClass(new("local"))), known: knowing(local, knownVolume("a", ofClass("local"))),
			want: `{"state":"AwaitsConsumer","rule":"C3","class":"local","search":{"volumes":1,"fit":0,"counts":[{"reason":"Delayed","volumes":1}],"nearest":{"volume":"a","link":"Unclaimed",
				"mismatches":[{"reason":"Delayed","asks":"a node first, as class local is WaitForFirstConsumer","has":"no node yet"}]}}}`,
			says: []string{"waiting for a pod that uses the claim", "0/1 volumes fit"}},
		{name: "C3 only finished pods, and one that has a node", claim: knownClaim(askingClass(new("local"))),
			known: knowing(local, podUsing("done", podPhase(corev1.PodSucceeded)), podUsing("runs", scheduled)), want: `{"state":"AwaitsConsumer","rule":"C3","class":"local"` + none + `}`},
		{name: "C3 a pod that has no node yet", claim: knownClaim(askingClass(new("local"))), known: knowing(local, podUsing("web"), podUsing("done", podPhase(corev1.PodFailed))),
			want: `{"state":"AwaitsScheduling","rule":"C3","class":"local","pods":["web"]` + none + `}`, says: []string{"web"}},
		{name: "C3 P3 a node is chosen: its provisioner is awaited there", claim: knownClaim(askingClass(new("fast")), claimNote(selectedNode, "node-a")), known: knowing(delayedFast),
			want: `{"state":"AwaitsProvisioner","rule":"P3","class":"fast","provisioner":"csi.example.com","node":"node-a"` + none + `}`, says: []string{`"csi.example.com"`, `"node-a"`}},
		{name: "C4 P3 asked already", claim: knownClaim(askingClass(new("fast")), claimNote(provisioner, "csi.example.com"), claimNote(betaProvisioner, "csi.example.com")), known: knowing(fast),
			want: `{"state":"AwaitsProvisioner","rule":"P3","class":"fast","provisioner":"csi.example.com"` + none + `}`, says: []string{"waiting for the provisioner"}},
		{name: "P2 a provisioner of ours, though nothing was read live", claim: knownClaim(askingClass(new("fast")), claimNote(provisioner, "csi.example.com"), claimNote(betaProvisioner, "csi.example.com")),
			known: knowing(fast), rules: hooks, want: `{"state":"AwaitsProvisioner","rule":"P2","class":"fast","provisioner":"csi.example.com"` + none + `}`, says: []string{"waiting for the provisioner"}},
		{name: "P1 the class does not exist", claim: knownClaim(askingClass(new("fast"))), want: `{"state":"NoProvisioner","rule":"P1","class":"fast"` + none + `}`, says: []string{"does not exist"}},
		{name: "P1 it provisions nothing", claim: knownClaim(askingClass(new("local")), claimNote(selectedNode, "node-a")), known: knowing(local),
			want: `{"state":"NoProvisioner","rule":"P1","class":"local"` + none + `}`, says: []string{"provisions none"}},
		{name: "C5 no class", claim: knownClaim(), known: knowing(knownVolume("a", sized("5Gi"))),
			want: `{"state":"NoVolumeFits","rule":"C5","search":{"volumes":1,"fit":0,"counts":[{"reason":"TooSmall","volumes":1,"largest":"5Gi"}],
				"nearest":{"volume":"a","link":"Unclaimed","mismatches":[{"reason":"TooSmall","asks":"10Gi","has":"5Gi"}]}}}`,
			says: []string{"no volume fits and the claim names no storage class: 0/1 volumes fit: 1 TooSmall (largest 5Gi); a would fit but for its size: 5Gi, the claim asks 10Gi"}},
		{name: "C6 the volume it names is absent", claim: knownClaim(naming("a")), want: `{"state":"AwaitsVolume","rule":"C6","volume":"a"}`},
		{name: "C7 the volume it names does not fit", claim: knownClaim(naming("a")), known: knowing(knownVolume("a", sized("5Gi"))),
			want: `{"state":"VolumeMismatch","rule":"C7","volume":"a","mismatches":[{"reason":"TooSmall","asks":"10Gi","has":"5Gi"}]}`},
		{name: "C9 L5", claim: knownClaim(naming("a")), known: knowing(knownVolume("a", refersToOther)), want: `{"state":"VolumeTaken","rule":"C9","volume":"a","holder":"pvc/default/other"}`},
		{name: "C9 M2", claim: knownClaim(naming("a")), known: knowing(knownVolume("a"), fitClaim(boundTo("a"), named("other"))),
			want: `{"state":"VolumeTaken","rule":"C9","volume":"a","holder":"pvc/default/other"}`},
		{name: "C9 M2 two have it", claim: knownClaim(naming("a")), known: knowing(knownVolume("a"), fitClaim(boundTo("a"), named("other")), fitClaim(boundTo("a"), named("another"))),
			want: `{"state":"VolumeTaken","rule":"C9","volume":"a"}`, says: []string{"default/another, default/other"}},
		{name: "C11 M2 others are bound to it too", claim: knownClaim(boundTo("a")), known: knowing(knownVolume("a"), fitClaim(boundTo("a"), named("other"))),
			want: `{"state":"VolumeContended","rule":"C11","volume":"a"}`, says: []string{"become Lost: default/other"}},
		{name: "C10 absent, as far as is known", claim: knownClaim(boundTo("a")), want: `{"state":"Lost","rule":"C10","volume":"a"}`, says: []string{`"a", which does not exist`}},
		{name: "C10 Lost already: the reason is said again", claim: knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost)), want: `{"state":"Lost","rule":"C10","volume":"a"}`, says: []string{`"a", which does not exist`}},
		{name: "C10 misbound", claim: knownClaim(boundTo("a")), known: knowing(knownVolume("a", refersToOther)),
			want: `{"state":"Lost","rule":"C10","volume":"a","holder":"pvc/default/other"}`, says: []string{"now belongs to"}},
		{name: "C10 it names none", claim: knownClaim(boundTo("")), want: `{"state":"Lost","rule":"C10"}`, says: []string{"names no volume"}},
		{name: "C12 being deleted", claim: knownClaim(claimBeingDeleted, claimFinalizers(claimProtection, "theirs")), known: knowing(podUsing("web", scheduled), podUsing("unscheduled")),
			want: `{"state":"Terminating","rule":"C12","finalizers":["kubernetes.io/pvc-protection","theirs"],"pods":["web"]}`,
			says: []string{"nothing new is begun for it: finalizers kubernetes.io/pvc-protection, theirs, and the pods that use it: web"}},
		{name: "F2 being deleted, used by none", claim: knownClaim(claimBeingDeleted, boundTo("a"), claimFinalizers(claimProtection)), rules: binding.Rules{Protection: binding.ProtectionOn},
			want: `{"state":"Terminating","rule":"F2","volume":"a","finalizers":["kubernetes.io/pvc-protection"]}`},
		{name: "P2 being deleted, with storage made for it", claim: knownClaim(claimBeingDeleted, claimFinalizers(provisioningFinalizer)),
			want: `{"state":"Terminating","rule":"P2","finalizers":["pvbind.github.io/provisioning"]}`},
	} {
		t.Run(row.name, row.run)
	}
}

func TestExplainClaimErrors(t *testing.T) {
	t.Run("X7 a malformed claim has no explanation", func(t *testing.T) {
		got, err := binding.ExplainClaim(knownClaim(asking("-1")), binding.Snapshot{}, binding.Rules{})
		var invalid *obj.InvalidError
		require.True(t, errors.As(err, &invalid))
		assert.Equal(t, binding.Explanation{Claim: dataKey}, got)
	})
	t.Run("C9 an error beside an explanation", func(t *testing.T) {
		got, err := binding.ExplainClaim(knownClaim(naming("a"), claimNote(boundBy, "yes")), knowing(knownVolume("a", refersToOther)), binding.Rules{})
		require.Error(t, err)
		assert.Equal(t, binding.ClaimRefused, got.State)
	})
}

// E3: whatever the state of the objects, the explanation is that of the decision, and the numbers are those of the
// search that the decision made.
func FuzzExplainClaim(f *testing.F) {
	addSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := newMuddle(bytes)
		before := m.copied()
		claim := m.Claims[0]
		got, err := binding.ExplainClaim(claim, m.Snapshot, m.rules)
		require.Equal(t, before, m.Snapshot, "X6")
		action, failed := binding.NextForClaim(claim, m.Snapshot, m.rules)
		if failed != nil {
			require.Equal(t, failed, err)
			return
		}
		if err != nil {
			return // of the claim as it is to be
		}
		require.NotEmpty(t, got.State)
		require.NotEmpty(t, got.Message)
		if got.State == binding.ClaimBound {
			require.False(t, claimWaits(action), "%s", action)
		}
		if got.Search != nil {
			require.Empty(t, got.Search.Chosen, "E3: %s", got)
			require.Empty(t, claim.Spec.VolumeName)
		}
		if action.Kind == binding.Wait && action.Rule == got.Rule {
			require.Contains(t, action.Why, got.Message, "E3")
		}
	})
}

func claimWaits(action binding.Action) bool {
	return action.Kind == binding.Wait && action.Rule != "P2"
}
