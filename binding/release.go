package binding

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// release is for a volume whose claim is gone (V3): it becomes Released, and then what its reclaim policy
// says. claim is whoever has the claim's name now, if anybody. Every write here needs proof that the claim
// is gone; where there is nothing to write, none is asked for.
func release(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, evidence Evidence, view View, rules Rules) Action {
	action := released(volume, claim, view, rules, "its claim is gone")
	if (action.Writes() || action.RunsHook()) && !evidence.Proven() {
		ref := volume.Spec.ClaimRef
		return readLive(obj.ClaimKey(ref.Namespace, ref.Name), "V3", "before the volume is released")
	}
	return action
}

// released is what is to be done if the claim is gone, or has another volume in the place of this one. Failed says that
// reclaiming was tried, and stays.
func released(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View, rules Rules, why string) Action {
	if at := volume.Status.Phase; at != corev1.VolumeReleased && at != corev1.VolumeFailed {
		// A crash after this write leaves a Released volume whose policy is still to be carried out;
		// the next decision does.
		return updateVolumeStatus(enter(volume, corev1.VolumeReleased, "", ""), "V3", why)
	}
	decision := reclaim.Decide(volume, rules.reclaim())
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle && decision.Verb != reclaim.StandDown && claim == nil {
		if action, blocked := awaitPods(volume, decision.Verb, view); blocked {
			return action
		}
	}
	switch decision.Verb {
	case reclaim.RunDeleter:
		return deleteStorage(volume, decision.Hook, view)
	case reclaim.RunRecycler:
		return recycle(volume, decision.Hook, view)
	case reclaim.Fail:
		return fail(volume, decision)
	case reclaim.Keep:
		return nothing("R2", "released; "+decision.Message)
	}
	return wait("R3", decision.Message)
}

// awaitPods holds recycling up while a pod that has not finished uses the old claim (R4). That none does is for
// the server to say, before a recycler runs.
func awaitPods(volume *corev1.PersistentVolume, verb reclaim.Verb, view View) (action Action, blocked bool) {
	ref := volume.Spec.ClaimRef
	pods, evidence := view.PodsOf(ref.Namespace, ref.Name)
	var names []string
	for _, pod := range reclaim.BlockRecycling(pods, ref.Namespace, ref.Name) {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	if len(names) == 0 {
		unproven := evidence == Unknown || verb == reclaim.RunRecycler && evidence != Live
		return readLive(obj.PodsKey(ref.Namespace), "R4", "before the volume is recycled"), unproven
	}
	message := "Volume is used by pods: " + strings.Join(names, ", ")
	waiting := wait("R4", message, normal(volume, EventVolumeFailedRecycle, message))
	waiting.Retry = RetryBackoff
	return waiting, true
}

// releaseClaim takes the in-use protection off a claim that is being deleted once no pod uses it (F2). A
// pod that a cache knows to use it settles the matter; that none does, only the server can say.
func releaseClaim(claim *corev1.PersistentVolumeClaim, view View, rules Rules) (action Action, decided bool) {
	if rules.Protection != ProtectionOn {
		return Action{}, false
	}
	pods, evidence := view.PodsOf(claim.Namespace, claim.Name)
	if !reclaim.ClaimReleasable(claim, pods) {
		return Action{}, false
	}
	if evidence != Live {
		return readLive(obj.PodsKey(claim.Namespace), "F2", "before the claim is let go"), true
	}
	// A crash before this write leaves a claim that is being deleted and protected, as it was.
	released := claim.DeepCopy()
	released.Finalizers = without(released.Finalizers, reclaim.ClaimProtection)
	return updateClaim(released, "F2", "it is being deleted and no pod uses it"), true
}

func without(finalizers []string, unwanted string) []string {
	return slices.DeleteFunc(finalizers, func(finalizer string) bool { return finalizer == unwanted })
}
