package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byCompletion holds the standings of a claim that names a volume, before and
// after it was fully bound once, and while its status is Bound.
type byCompletion struct{ before, after, isBound ClaimStanding }

const absent = "absent"

// claimTable says the standing for each shape of the named volume's claimRef. The status counts where it says so.
var claimTable = map[string]byCompletion{
	absent:                             {Awaiting, Lost, ""},
	"L1 no claimRef":                   {Asking, Asking, Bound},
	"L2 this claim without UID":        {Finishing, Misbound, ""},
	"L3 this claim with its UID":       {Finishing, Bound, ""},
	"L4 this claim with another UID":   {Refused, Misbound, ""},
	"L5 another name without UID":      {Refused, Misbound, ""},
	"L5 another name with UID":         {Refused, Misbound, ""},
	"L5 another name with this UID":    {Refused, Misbound, ""},
	"L5 another namespace without UID": {Refused, Misbound, ""},
	"L5 another namespace with UID":    {Refused, Misbound, ""},
	"L5 no namespace":                  {Refused, Misbound, ""},
	"L5 empty claimRef":                {Refused, Misbound, ""},
}

func (b byCompletion) of(claim *corev1.PersistentVolumeClaim) ClaimStanding {
	_, completed := claim.Annotations["pv.kubernetes.io/bind-completed"]
	switch named := claim.Spec.VolumeName != ""; {
	case named && b.isBound != "" && claim.Status.Phase == corev1.ClaimBound:
		return b.isBound
	case completed && named:
		return b.after
	case completed:
		return Lost
	case named:
		return b.before
	}
	return Unbound
}

func TestClaimStandingOf(t *testing.T) {
	named := map[string]*corev1.PersistentVolume{absent: nil}
	for _, shape := range refs {
		named[shape.name] = newVolume(shape.ref)
	}
	for name, volume := range named {
		t.Run("C5 to C11 "+name, func(t *testing.T) {
			want, ok := claimTable[name]
			assert.True(t, ok, "a row for every shape")
			for _, claim := range claims() {
				assert.Equal(t, want.of(claim), ClaimStandingOf(claim, volume), "claim %v", claim)
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

func TestHeldVolumeIsNeverLost(t *testing.T) {
	volume := newVolume(ref("shop", "data", claimUID))
	for _, claim := range claims() {
		if claim.Spec.VolumeName == "" {
			continue
		}
		assert.NotEqual(t, corev1.ClaimLost, OfClaim(withoutPhase(claim), ClaimStandingOf(claim, volume)), "X4")
	}
}

func withoutPhase(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	claim.Status.Phase = ""
	return claim
}

// Columns in the order of claimPhases: the phase it has.
var claimPhaseTable = map[ClaimStanding][4]corev1.PersistentVolumeClaimPhase{
	Unbound:   {"Pending", "Pending", "Pending", "Pending"},
	Awaiting:  {"Pending", "Pending", "Pending", "Pending"},
	Asking:    {"Pending", "Pending", "Pending", "Pending"},
	Finishing: {"Bound", "Bound", "Bound", "Bound"},
	Refused:   {"Pending", "Pending", "Pending", "Pending"},
	Lost:      {"Lost", "Lost", "Lost", "Lost"},
	Misbound:  {"Lost", "Lost", "Lost", "Lost"},
	Bound:     {"Bound", "Bound", "Bound", "Bound"},
	"Unheard": {"", "Pending", "Bound", "Lost"},
}

func TestOfClaim(t *testing.T) {
	for standing, row := range claimPhaseTable {
		for i, current := range claimPhases {
			t.Run("C5 to C11 "+string(standing)+" from "+string(current), func(t *testing.T) {
				claim := newClaim(thisName)
				claim.Status.Phase = current
				assert.Equal(t, row[i], OfClaim(claim, standing))
			})
		}
	}
}

func TestPhasesThatAreLeftAlone(t *testing.T) {
	for _, current := range claimPhases {
		t.Run("C9 refused, bound by controller, from "+string(current), func(t *testing.T) {
			claim := newClaim(thisName)
			claim.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
			claim.Status.Phase = current
			assert.Equal(t, current, OfClaim(claim, Refused))
		})
		t.Run("C12 half bound, being deleted, from "+string(current), func(t *testing.T) {
			claim := newClaim(thisName)
			claim.DeletionTimestamp = &metav1.Time{}
			claim.Status.Phase = current
			assert.Equal(t, current, OfClaim(claim, Finishing))
		})
	}
}

// C7: a claim that was bound once stays as it is until it is bound again.
func TestAskingKeepsLost(t *testing.T) {
	for _, current := range claimPhases {
		claim := newClaim(thisName)
		claim.Annotations = map[string]string{BindCompletedAnnotation: "yes"}
		claim.Status.Phase = current
		assert.Equal(t, current, OfClaim(claim, Asking))
	}
}

// The exceptions of C7, C9 and C12 hold for their standing only.
func TestNothingElseIsLeftAlone(t *testing.T) {
	for _, claim := range claims() {
		for standing := range claimPhaseTable {
			exception := standing == "Unheard" ||
				standing == Asking && BindCompleted(claim) ||
				standing == Refused && BoundByController(claim) ||
				standing == Finishing && claim.DeletionTimestamp != nil
			if exception {
				assert.Equal(t, claim.Status.Phase, OfClaim(claim, standing), "%s, claim %v", standing, claim)
				continue
			}
			assert.Equal(t, claimPhaseTable[standing][0], OfClaim(claim, standing), "%s, claim %v", standing, claim)
		}
	}
}

func TestEveryClaimHasAPhaseThatStays(t *testing.T) {
	for _, shape := range refs {
		volume := newVolume(shape.ref)
		for _, claim := range claims() {
			before := claim.DeepCopy()
			standing := ClaimStandingOf(claim, volume)
			assert.Contains(t, claimPhaseTable, standing)

			once := claim.DeepCopy()
			once.Status.Phase = OfClaim(claim, standing)
			assert.Equal(t, standing, ClaimStandingOf(once, volume), "X8 a phase does not change the standing")
			assert.Equal(t, once.Status.Phase, OfClaim(once, standing), "X8 a second look changes nothing")
			assert.Equal(t, before, claim, "X6")
		}
	}
}
