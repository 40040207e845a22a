package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
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
	"L1 no namespace, this UID":        {ClaimRequestsVolume, ClaimRequestsVolume, ClaimBound},
	"L1 no name, this UID":             {ClaimRequestsVolume, ClaimRequestsVolume, ClaimBound},
	"L5 no namespace, another UID":     {ClaimVolumeTaken, ClaimMisbound, ""},
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
