package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byCompletion holds the states of a claim that names a volume, before and
// after it was fully bound once, and while its status is Bound.
type byCompletion struct{ before, after, isBound ClaimBindingState }

const absent = "absent"

// claimTable has the state for each shape of the named volume's claimRef. The status counts where it says so.
var claimTable = map[string]byCompletion{
	absent:                             {ClaimAwaitsVolume, ClaimLost, ""},
	"L1 no claimRef":                   {ClaimRequestsVolume, ClaimRequestsVolume, ClaimBound},
	"L2 this claim without UID":        {ClaimBinding, ClaimMisbound, ""},
	"L3 this claim with its UID":       {ClaimBinding, ClaimBound, ""},
	"L4 this claim with another UID":   {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 another name without UID":      {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 another name with UID":         {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 another name with this UID":    {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 another namespace without UID": {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 another namespace with UID":    {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 no namespace":                  {ClaimVolumeTaken, ClaimMisbound, ""},
	"L5 empty claimRef":                {ClaimVolumeTaken, ClaimMisbound, ""},
}

func (b byCompletion) of(claim *corev1.PersistentVolumeClaim) ClaimBindingState {
	_, completed := claim.Annotations["pv.kubernetes.io/bind-completed"]
	switch named := claim.Spec.VolumeName != ""; {
	case named && b.isBound != "" && claim.Status.Phase == corev1.ClaimBound:
		return b.isBound
	case completed && named:
		return b.after
	case completed:
		return ClaimLost
	case named:
		return b.before
	}
	return ClaimUnbound
}

func TestClaimBindingStateOf(t *testing.T) {
	named := map[string]*corev1.PersistentVolume{absent: nil}
	for _, shape := range refs {
		named[shape.name] = newVolume(shape.ref)
	}
	for name, volume := range named {
		t.Run("C5 to C11 "+name, func(t *testing.T) {
			want, ok := claimTable[name]
			assert.True(t, ok, "a row for every shape")
			for _, claim := range claims() {
				assert.Equal(t, want.of(claim), ClaimBindingStateOf(claim, volume), "claim %v", claim)
			}
		})
	}
}

// M2: status is the only proof, with and without annotations.
func TestOwned(t *testing.T) {
	for _, claim := range claims() {
		want := ""
		if claim.Status.Phase == corev1.ClaimBound {
			want = claim.Spec.VolumeName
		}
		assert.Equal(t, want, Owned(claim), "claim %v", claim)
	}
}

func TestClaimOfABoundVolumeIsNeverLost(t *testing.T) {
	volume := newVolume(ref("shop", "data", claimUID))
	for _, claim := range claims() {
		if claim.Spec.VolumeName == "" {
			continue
		}
		assert.NotEqual(t, corev1.ClaimLost, OfClaim(withoutPhase(claim), ClaimBindingStateOf(claim, volume)), "X4")
	}
}

func withoutPhase(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	claim.Status.Phase = ""
	return claim
}

// Columns in the order of claimPhases: the phase it has.
var claimPhaseTable = map[ClaimBindingState][4]corev1.PersistentVolumeClaimPhase{
	ClaimUnbound:        {"Pending", "Pending", "Pending", "Pending"},
	ClaimAwaitsVolume:   {"Pending", "Pending", "Pending", "Pending"},
	ClaimRequestsVolume: {"Pending", "Pending", "Pending", "Pending"},
	ClaimBinding:        {"Bound", "Bound", "Bound", "Bound"},
	ClaimVolumeTaken:    {"Pending", "Pending", "Pending", "Pending"},
	ClaimLost:           {"Lost", "Lost", "Lost", "Lost"},
	ClaimMisbound:       {"Lost", "Lost", "Lost", "Lost"},
	ClaimBound:          {"Bound", "Bound", "Bound", "Bound"},
	"Unheard":           {"", "Pending", "Bound", "Lost"},
}

func TestOfClaim(t *testing.T) {
	for state, row := range claimPhaseTable {
		for i, current := range claimPhases {
			t.Run("C5 to C11 "+string(state)+" from "+string(current), func(t *testing.T) {
				claim := newClaim(thisName)
				claim.Status.Phase = current
				assert.Equal(t, row[i], OfClaim(claim, state))
			})
		}
	}
}

func TestPhasesThatAreLeftAlone(t *testing.T) {
	for _, current := range claimPhases {
		t.Run("C9 its volume is taken, bound by controller, from "+string(current), func(t *testing.T) {
			claim := newClaim(thisName)
			claim.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
			claim.Status.Phase = current
			assert.Equal(t, current, OfClaim(claim, ClaimVolumeTaken))
		})
		t.Run("C12 half bound, being deleted, from "+string(current), func(t *testing.T) {
			claim := newClaim(thisName)
			claim.DeletionTimestamp = &metav1.Time{}
			claim.Status.Phase = current
			assert.Equal(t, current, OfClaim(claim, ClaimBinding))
		})
	}
}

// C7: a claim that was bound once stays as it is until it is bound again.
func TestRequestingKeepsLost(t *testing.T) {
	for _, current := range claimPhases {
		claim := newClaim(thisName)
		claim.Annotations = map[string]string{BindCompletedAnnotation: "yes"}
		claim.Status.Phase = current
		assert.Equal(t, current, OfClaim(claim, ClaimRequestsVolume))
	}
}

// The exceptions of C7, C9 and C12 hold for their state only.
func TestNothingElseIsLeftAlone(t *testing.T) {
	for _, claim := range claims() {
		for state := range claimPhaseTable {
			exception := state == "Unheard" ||
				state == ClaimRequestsVolume && BindCompleted(claim) ||
				state == ClaimVolumeTaken && BoundByController(claim) ||
				state == ClaimBinding && claim.DeletionTimestamp != nil
			if exception {
				assert.Equal(t, claim.Status.Phase, OfClaim(claim, state), "%s, claim %v", state, claim)
				continue
			}
			assert.Equal(t, claimPhaseTable[state][0], OfClaim(claim, state), "%s, claim %v", state, claim)
		}
	}
}

func TestEveryClaimHasAPhaseThatStays(t *testing.T) {
	for _, shape := range refs {
		volume := newVolume(shape.ref)
		for _, claim := range claims() {
			before := claim.DeepCopy()
			state := ClaimBindingStateOf(claim, volume)
			assert.Contains(t, claimPhaseTable, state)

			once := claim.DeepCopy()
			once.Status.Phase = OfClaim(claim, state)
			assert.Equal(t, state, ClaimBindingStateOf(once, volume), "X8 a phase does not change the state")
			assert.Equal(t, once.Status.Phase, OfClaim(once, state), "X8 a second look changes nothing")
			assert.Equal(t, before, claim, "X6")
		}
	}
}
