package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// nextOrphaned decides on a volume whose claim is gone (V3): it becomes Released, and then what its reclaim policy
// says. claim is the one that has the name now, if any. Every write here needs a live read which shows that the claim
// is gone; where there is nothing to write, there is no read.
func nextOrphaned(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, source Source, view View, options Options) Action {
	action := releaseAndReclaim(volume, claim, view, options, "its claim is gone")
	if (action.Writes() || action.RunsHook()) && !source.IsLive() {
		return ReadLive(obj.ReferencedClaim(volume), "V3", "before the volume is released")
	}
	return action
}

// releaseAndReclaim decides on a volume whose claim is gone, or has another volume in its place. A Failed volume stays Failed:
// that says that reclaiming was tried.
func releaseAndReclaim(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View, options Options, why string) Action {
	if at := volume.Status.Phase; at != corev1.VolumeReleased && at != corev1.VolumeFailed {
		// A crash after this write leaves a Released volume whose policy is still to be carried out;
		// the next decision does.
		return setPhase(volume, corev1.VolumeReleased, "V3", why)
	}
	verdict := reclaim.Decide(volume, options.reclaim())
	recycles := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle && verdict.Action != reclaim.LeaveToProvisioner
	if recycles && claim == nil { // a claim that exists has another volume, and its pods do not use this one
		if action, blocked := awaitPods(volume, verdict.Action, view); blocked {
			return action
		}
	}
	switch verdict.Action {
	case reclaim.RunDeleter:
		return deleteStorage(volume, verdict.Hook, view)
	case reclaim.RunRecycler:
		return recycle(volume, verdict.Hook, view)
	case reclaim.Fail:
		return fail(volume, EventReason(verdict.EventReason), verdict.Message)
	case reclaim.Keep:
		return nothing("R2", "released; "+verdict.Message)
	}
	return wait("R3", verdict.Message)
}

// awaitPods blocks recycling while a pod that has not finished uses the old claim (R4). Before a recycler runs, a live
// list must show that there is none.
func awaitPods(volume *corev1.PersistentVolume, next reclaim.Action, view View) (action Action, blocked bool) {
	ref := volume.Spec.ClaimRef
	pods, source := view.PodsOf(ref.Namespace, ref.Name)
	var names []string
	for _, pod := range reclaim.BlockRecycling(pods, ref.Namespace, ref.Name) {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	if len(names) == 0 {
		blocked = source == NotInCache || next == reclaim.RunRecycler && source != FromLiveRead
		return ReadLive(obj.PodsKey(ref.Namespace), "R4", "before the volume is recycled"), blocked
	}
	message := "Volume is used by pods: " + strings.Join(names, ", ")
	return wait("R4", message, normal(volume, EventVolumeFailedRecycle, message)).withBackoff(), true
}

// deleteStorage deletes a Released volume whose deleter is registered (R3): first the storage, then the volume,
// and last the finalizers that kept it until its storage was deleted, those of an external provisioner that had it
// before among them. Each crash in between leaves a volume for which the deleter, which is idempotent, is run once more.
func deleteStorage(volume *corev1.PersistentVolume, hook string, view View) Action {
	if action, done := runHook(volume, RunDeleter, hook, view); !done {
		return action
	}
	kept := reclaim.WithoutStorage(slices.Clone(volume.Finalizers))
	switch {
	case volume.DeletionTimestamp == nil:
		return Action{Kind: DeleteVolume, Volume: volume, Rule: "R3", Why: "its storage is deleted"}
	case slices.Equal(kept, volume.Finalizers):
		return nothing("R3", "its storage is deleted; finalizers of others keep the volume")
	}
	changed := volume.DeepCopy()
	changed.Finalizers = kept
	return updateVolume(changed, "R3", "its storage is deleted")
}

// recycle recycles a Released volume whose recycler is registered and whose claim no pod uses (R4). A crash
// before the volume is unbound leaves one that is recycled again.
func recycle(volume *corev1.PersistentVolume, hook string, view View) Action {
	if action, done := runHook(volume, RunRecycler, hook, view); !done {
		return action
	}
	action := updateVolume(unbind(volume), "R4", "it is scrubbed")
	action.Events = []Event{normal(volume, EventVolumeRecycled, "the volume is scrubbed, and free for another claim")}
	return action
}

// reclaimHook has the rule and the events of a hook that reclaims storage.
type reclaimHook struct {
	rule          string
	inUse, failed EventReason
}

// reclaimHookOf returns those of a deleter or a recycler. As upstream, a volume in use is told by a Normal event VolumeDelete
// before it is deleted, and by the reason of a failure before it is recycled.
func reclaimHookOf(kind ActionKind) reclaimHook {
	if kind == RunRecycler {
		return reclaimHook{"R4", EventVolumeFailedRecycle, EventVolumeFailedRecycle}
	}
	return reclaimHook{"R3", EventVolumeDelete, EventVolumeFailedDelete}
}

// runHook runs the deleter or recycler of a volume that is attached to no node, after a live read of the volume. Done means
// that the hook succeeded in this sync and the volume was read since.
func runHook(volume *corev1.PersistentVolume, kind ActionKind, hook string, view View) (action Action, done bool) {
	rule := reclaimHookOf(kind).rule
	answer, ran := lastOf(hook, view.Answered(kind, volume.UID))
	if !ran {
		if action, attached := awaitDetach(volume, kind, view); attached {
			return action, false
		}
	}
	if _, source := view.Volume(volume.Name); source != FromLiveRead {
		return ReadLive(obj.VolumeKey(volume.Name), rule, "before its storage is reclaimed"), false
	}
	switch {
	case !ran:
		why := "its claim is gone and its reclaim policy is " + string(volume.Spec.PersistentVolumeReclaimPolicy)
		return Action{Kind: kind, Hook: hook, Volume: volume, Rule: rule, Why: why}, false
	case answer.Err != nil:
		return notReclaimed(volume, answer), false
	}
	return Action{}, true
}

// awaitDetach blocks a deleter or recycler while the volume is attached to a node. An attachment that is being deleted
// counts until it is gone. Before the hook runs, a live list must show that there is none.
func awaitDetach(volume *corev1.PersistentVolume, kind ActionKind, view View) (action Action, blocked bool) {
	attachments, source := view.AttachmentsOf(volume.Name)
	if len(attachments) > 0 {
		return awaitUnused(volume, kind, attachedTo(attachments)).withBackoff(), true
	}
	return ReadLive(obj.AttachmentsKey(), reclaimHookOf(kind).rule, "before its storage is reclaimed"), source != FromLiveRead
}

// attachedTo names the nodes of attachments, each once, in order: "attached to node a, b".
func attachedTo(attachments []*storagev1.VolumeAttachment) string {
	var nodes []string
	for _, attachment := range attachments {
		nodes = append(nodes, attachment.Spec.NodeName)
	}
	slices.Sort(nodes)
	return "attached to node " + strings.Join(slices.Compact(nodes), ", ")
}

// awaitUnused leaves a volume in its phase until its storage is not in use any more.
func awaitUnused(volume *corev1.PersistentVolume, kind ActionKind, why string) Action {
	message := "the storage is still in use: " + why
	return wait(reclaimHookOf(kind).rule, message, normal(volume, reclaimHookOf(kind).inUse, message))
}

// notReclaimed returns the action after a hook that failed or is still in progress.
func notReclaimed(volume *corev1.PersistentVolume, answer Answer) Action {
	switch answer.hookError().Meaning {
	case hooks.InProgress:
		return answer.retry(wait("Rh", "its storage is being reclaimed"))
	case hooks.NotMine:
		return answer.retry(wait("R3", fmt.Sprintf("another controller reclaims it: %v", answer.Err)))
	case hooks.InUse:
		return answer.retry(awaitUnused(volume, answer.Of, answer.Err.Error()))
	}
	failed := fail(volume, reclaimHookOf(answer.Of).failed, answer.Err.Error())
	if failed.Kind != Wait {
		return failed
	}
	return answer.retry(failed)
}

// fail makes a volume that cannot be reclaimed Failed (R3 to R5). Reclaiming is tried again, except with an unknown policy:
// that ends only when the volume changes.
func fail(volume *corev1.PersistentVolume, reason EventReason, problem string) Action {
	rule, retry := "R3", RetryBackoff
	switch reason {
	case EventVolumeFailedRecycle:
		rule = "R4"
	case EventUnknownReclaimPolicy:
		rule, retry = "R5", RetryNever
	}
	message := oneline.Text("the volume cannot be reclaimed: "+problem, messageLimit)
	if volume.Status.Phase == corev1.VolumeFailed && volume.Status.Message == message {
		return Action{Kind: Wait, Rule: rule, Why: message, Retry: retry}
	}
	// The message in the status keeps a later controller from sending the event again. A crash before this write leaves the
	// volume as it was, and reclaiming is tried again; one right after it loses the event.
	failed := setPhase(volume, corev1.VolumeFailed, rule, message)
	failed.Volume.Status.Reason, failed.Volume.Status.Message = string(reason), message
	failed.Events = []Event{warning(volume, reason, message)}
	return failed
}
