package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// A volume without claimRef under a Bound claim is left so only where another claim may own it, too (M2).
func TestM2TheJudgeOfAVolumeWithoutClaimRef(t *testing.T) {
	volume, owner := KnownVolume("a"), KnownClaim(BoundTo("a"))
	other := func(phase corev1.PersistentVolumeClaimPhase, names string) *corev1.PersistentVolumeClaim {
		return KnownClaim(BoundTo(names), func(c *corev1.PersistentVolumeClaim) {
			c.Name, c.UID, c.Status.Phase = "other", "uid-of-other", phase
		})
	}
	judged := func(hadIt bool, others ...obj.Object) []string {
		h := &History{hadBy: map[holding]bool{{"a", "uid-of-other"}: hadIt}}
		h.JudgeVolume(Knowing(append(others, volume, owner)...), volume)
		return h.Broken
	}
	assert.NotEmpty(t, judged(true), "the other one is gone")
	assert.Empty(t, judged(true, other(corev1.ClaimLost, "a")))
	assert.Empty(t, judged(true, other(corev1.ClaimPending, "a")), "its tenant has taken bind-completed off, or a restore its binding")
	assert.NotEmpty(t, judged(true, other(corev1.ClaimLost, "b")))
	assert.NotEmpty(t, judged(false, other(corev1.ClaimPending, "a")), "anybody may name it")
}
