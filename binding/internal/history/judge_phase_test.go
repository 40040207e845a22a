package history_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/phase"
)

// Columns in the order of claimPhases: the phase it has.
var claimPhaseTable = map[phase.ClaimBindingState][4]corev1.PersistentVolumeClaimPhase{
	phase.ClaimUnbound:        {"Pending", "Pending", "Pending", "Pending"},
	phase.ClaimAwaitsVolume:   {"Pending", "Pending", "Pending", "Pending"},
	phase.ClaimRequestsVolume: {"Pending", "Pending", "Pending", "Pending"},
	phase.ClaimBinding:        {"Bound", "Bound", "Bound", "Bound"},
	phase.ClaimVolumeTaken:    {"Pending", "Pending", "Pending", "Pending"},
	phase.ClaimLost:           {"Lost", "Lost", "Lost", "Lost"},
	phase.ClaimMisbound:       {"Lost", "Lost", "Lost", "Lost"},
	phase.ClaimBound:          {"Bound", "Bound", "Bound", "Bound"},
	"Unheard":                 {"", "Pending", "Bound", "Lost"},
}

var claimPhases = [4]corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost}

func TestPhaseOfClaim(t *testing.T) {
	for state, row := range claimPhaseTable {
		for i, current := range claimPhases {
			t.Run("C5 to C11 "+string(state)+" from "+string(current), func(t *testing.T) {
				assert.Equal(t, row[i], judge.PhaseOfClaim(claimIn(current), state))
			})
		}
	}
}

func claimIn(current corev1.PersistentVolumeClaimPhase, annotations ...string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.Status.Phase = "shop", "data", current
	for _, annotation := range annotations {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotation, "yes")
	}
	return claim
}

func TestPhaseOfClaimThatStays(t *testing.T) {
	for _, current := range claimPhases {
		taken := claimIn(current, phase.BoundByControllerAnnotation)
		assert.Equal(t, current, judge.PhaseOfClaim(taken, phase.ClaimVolumeTaken), "C9 its volume is taken, bound by controller")

		deleted := claimIn(current)
		deleted.DeletionTimestamp = &metav1.Time{}
		assert.Equal(t, current, judge.PhaseOfClaim(deleted, phase.ClaimBinding), "C12 half bound, being deleted")

		once := claimIn(current, phase.BindCompletedAnnotation)
		assert.Equal(t, current, judge.PhaseOfClaim(once, phase.ClaimRequestsVolume), "C7 it was bound once")
	}
}

// The exceptions of C7, C9 and C12 hold for their state only, and a second look changes nothing (X8).
func TestPhaseOfClaimInEachOtherState(t *testing.T) {
	for state, row := range claimPhaseTable {
		for i, current := range claimPhases {
			for _, claim := range []*corev1.PersistentVolumeClaim{
				claimIn(current, phase.BoundByControllerAnnotation),
				claimIn(current, phase.BindCompletedAnnotation),
				claimIn(current, phase.BoundByControllerAnnotation, phase.BindCompletedAnnotation),
			} {
				want := row[i]
				if state == phase.ClaimRequestsVolume && phase.BindCompleted(claim) || state == phase.ClaimVolumeTaken && phase.BoundByController(claim) {
					want = current
				}
				got := judge.PhaseOfClaim(claim, state)
				assert.Equal(t, want, got, "%s, claim %v", state, claim)
				claim.Status.Phase = got
				assert.Equal(t, got, judge.PhaseOfClaim(claim, state), "X8 %s, claim %v", state, claim)
			}
		}
	}
}
