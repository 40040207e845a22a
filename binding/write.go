package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

func updateVolume(changed *corev1.PersistentVolume, rule, why string) Action {
	return Action{Kind: UpdateVolume, Volume: changed, Rule: rule, Why: why}
}

func updateVolumeStatus(changed *corev1.PersistentVolume, rule, why string) Action {
	return Action{Kind: UpdateVolumeStatus, Volume: changed, Rule: rule, Why: why}
}

func updateClaim(changed *corev1.PersistentVolumeClaim, rule, why string) Action {
	return Action{Kind: UpdateClaim, Claim: changed, Rule: rule, Why: why}
}

func updateClaimStatus(changed *corev1.PersistentVolumeClaim, rule, why string) Action {
	return Action{Kind: UpdateClaimStatus, Claim: changed, Rule: rule, Why: why}
}

// readLive asks for a live read.
func readLive(key obj.Key, rule, why string) Action {
	return Action{Kind: Read, Key: key, Rule: rule, Why: why}
}

// handOver lets the claim go next.
func handOver(claim obj.Key, rule, why string) Action {
	return Action{Kind: HandOver, Key: claim, Rule: rule, Why: why}
}

// wait does nothing until something changes.
func wait(rule, why string, events ...Event) Action {
	return Action{Kind: Wait, Rule: rule, Why: oneline.Text(why, eventLimit), Events: events}
}

// nothing is to be done.
func nothing(rule, why string) Action { return Action{Rule: rule, Why: why} }
