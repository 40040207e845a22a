package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// releaseAndReclaim decides on a volume whose claim is gone, or has another volume in its place. A Failed volume stays Failed:
// that says that reclaiming was tried.
func releaseAndReclaim(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View, options Options, why string) Action {
	if waiting, kept := keepForOwner(volume, view); kept {
		return waiting
	}
	if released := phase.OfVolume(volume, phase.VolumeOrphaned); volume.Status.Phase != released {
		// A crash after this write leaves a Released volume whose policy is still to be carried out;
		// the next decision does.
		return setPhase(volume, released, "V3", why)
	}
	verdict := reclaim.Decide(volume, options.reclaim())
	if outlivesAnnouncement(volume, verdict.Action) {
		if action, blocked := awaitDestruction(volume, nil, view, options); blocked {
			return action
		}
	}
	recycles := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle && verdict.Action != reclaim.LeaveToProvisioner
	if recycles && (claim == nil || claim.UID != volume.Spec.ClaimRef.UID) { // else it has another volume, and its pods do not use this one
		if action, blocked := awaitPods(volume, claim, verdict.Action, view, options); blocked {
			return action
		}
	}
	switch verdict.Action {
	case reclaim.RunDeleter:
		return deleteStorage(volume, verdict.Hook, view, options)
	case reclaim.RunRecycler:
		return recycle(volume, verdict.Hook, view, options)
	case reclaim.Fail:
		failed := fail(volume, EventReason(verdict.EventReason), verdict.Message)
		if announcement, _ := reclaim.AnnouncementOf(volume); announcement.By != options.Identity && announcement.Token > 0 && volume.Status.Phase == corev1.VolumeFailed {
			return wait(failed.Rule, failed.Why).withBackoff() // who has such a hook says why it failed; each would undo what the other writes
		}
		return failed
	case reclaim.Keep:
		return nothing("R2", "released; "+verdict.Message)
	}
	waiting := wait("R3", verdict.Message)
	_, announced := reclaim.AnnouncementOf(volume) // which is told as R8 says
	stays := volume.DeletionTimestamp != nil && slices.Contains(reclaim.Finalizers(volume, options.reclaim()), reclaim.InTreeFinalizer)
	annotated := volume.Annotations[phase.ProvisionedByAnnotation] != "" || volume.Annotations[storageclass.MigratedToAnnotation] != ""
	message := ""
	switch {
	case stays && (!announced || storageDeleted(volume, view)):
		message = fmt.Sprintf("the finalizer %s keeps the volume, which its provisioner of before put on it, and nobody takes off: %s", reclaim.InTreeFinalizer, verdict.Message)
	case volume.DeletionTimestamp == nil && !annotated:
		message = fmt.Sprintf("the storage of volume %q is left to %q, whose external-provisioner deletes only what has annotation %s with that name: write that, or delete storage and volume by hand",
			volume.Name, verdict.By, phase.ProvisionedByAnnotation)
	}
	if message != "" {
		waiting.Events = []Event{warning(volume, EventVolumeFailedDelete, message)}
	}
	return waiting
}

// keepForOwner leaves a volume as it is that is to lose its data, while a claim names it that is Bound, or a claim has the UID in its
// claimRef and names it, or none (R3). A person has edited the claimRef, perhaps by mistake, or a restore of the server has. That a claim is Lost is no
// proof by itself: who writes bind-completed onto a claim makes it so, and Pending who removes it.
func keepForOwner(volume *corev1.PersistentVolume, view View) (waiting Action, kept bool) {
	owners, claimant := claimants(volume, view), view.Claimant(volume)
	if len(owners) == 0 || storageDeleted(volume, view) {
		return Action{}, false
	}
	ref := volume.Spec.ClaimRef
	message := fmt.Sprintf("volume %q is bound to claim %s/%s, which is gone or has another volume; %s was bound to it and names it, or has the UID in its claimRef, so it may have that claim's data, and is left as it is until that changes or the claim is gone",
		volume.Name, ref.Namespace, ref.Name, claimNames(owners))
	waiting = wait("R3", message, warning(volume, EventVolumeMismatch, message))
	if claim, _ := view.Claim(claimant.Namespace, claimant.Name); claim != nil && claim.Spec.VolumeName == "" {
		waiting = waiting.withBackoff() // for what becomes of it does not lead back to the volume
	}
	return waiting, true
}

// awaitPods blocks recycling while a pod that has not finished uses the old claim (R4). Before a recycler runs, a live
// list must show that there is none, once the call is announced. The claim is the one that has the name by now; nil if none.
func awaitPods(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, next reclaim.Action, view View, options Options) (action Action, blocked bool) {
	ref := volume.Spec.ClaimRef
	action, blocked = awaitPodsOf(volume, ref, claim, next, view, options)
	for _, former := range view.FormerClaims(volume.Name) { // an edit of claimRef, or a slip in it, hides whose pods have it mounted
		if blocked {
			break
		}
		claim, _ = view.Claim(former.Namespace, former.Name)
		action, blocked = awaitPodsOf(volume, former, claim, next, view, options)
	}
	return action, blocked
}

// awaitPodsOf does so for the pods of the claim that a claimRef names.
func awaitPodsOf(volume *corev1.PersistentVolume, ref *corev1.ObjectReference, claim *corev1.PersistentVolumeClaim, next reclaim.Action, view View, options Options) (action Action, blocked bool) {
	if claim != nil && claim.Spec.VolumeName == volume.Name && (phase.Lost(claim) != "" || claim.UID == ref.UID) { // it was bound to it, and its pods have it mounted, whenever they were started
		claim = nil
	}
	pods, count, source := view.RecyclingBlockedBy(ref.Namespace, ref.Name, claim, namedPods)
	if count == 0 {
		blocked = source == NotInCache
		if next == reclaim.RunRecycler {
			blocked = source != FromLiveRead && announcedToken(volume, view, options) != 0
		}
		return ReadLive(obj.PodsKey(ref.Namespace), "R4", "before the volume is recycled"), blocked
	}
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = ref.Namespace + "/" + pod
	}
	message, same := namePods("Volume is used by pods: ", names, count)
	event := normal(volume, EventVolumeFailedRecycle, message)
	event.same = same
	return wait("R4", message, event).withBackoff(), true
}

// deleteStorage deletes a Released volume whose deleter is registered (R3): first the storage, then the volume,
// and last the finalizers that kept it until its storage was deleted, those of an external provisioner that had it
// before among them. Each crash in between leaves a volume for which the deleter, which is idempotent, is run once more.
func deleteStorage(volume *corev1.PersistentVolume, hook string, view View, options Options) Action {
	noted := storageNoted(volume)
	if !noted {
		if action, done := runHook(volume, RunDeleter, hook, view, options); !done {
			return action
		}
	}
	if volume.DeletionTimestamp == nil {
		return Action{Kind: DeleteVolume, Volume: volume, Rule: "R3", Why: "its storage is deleted"}
	}
	return removeFinalizers(volume, view, options)
}

// removeFinalizers removes from a volume that is being deleted what kept it until its storage was. On one that finalizers of others keep
// it notes that: else each controller would announce and delete the storage once more whenever the volume changes, which an
// announcement of another does.
func removeFinalizers(volume *corev1.PersistentVolume, view View, options Options) Action {
	kept := reclaim.WithoutStorage(slices.Clone(volume.Finalizers))
	held := len(kept) < len(volume.Finalizers)
	kept = without(kept, reclaim.AnnouncementFinalizer)
	if options.Protection != ProtectionOff && reclaim.VolumeReleasable(volume, reclaim.VolumeProtection) { // in the same write: after it nobody would know that its storage is deleted
		kept = without(kept, reclaim.VolumeProtection)
	}
	note := !storageNoted(volume) && len(kept) > 0
	if !held && !note { // F3 takes off what else there may be
		return nothing("R3", "its storage is deleted; finalizers of others keep the volume")
	}
	return update(volume, func(metadata *metav1.ObjectMeta) {
		metadata.Finalizers = kept
		if note {
			noteDeleted(metadata, volume, view, options)
		}
	}, "R3", "its storage is deleted")
}

// recycle recycles a Released volume whose recycler is registered and whose claim no pod uses (R4). A crash
// before the volume is unbound leaves one that is recycled again.
func recycle(volume *corev1.PersistentVolume, hook string, view View, options Options) Action {
	if action, done := runHook(volume, RunRecycler, hook, view, options); !done {
		return action
	}
	action := unbind(volume, "R4", "it is scrubbed")
	edit := action.edit
	action.edit = func(metadata *metav1.ObjectMeta) {
		edit(metadata)
		reclaim.Withdraw(metadata)
	}
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

// runHook runs the deleter or recycler of a volume that is attached to no node. It announces the call first, unless another
// controller has announced its own (R8). After that a live list of all attachments shows that there is none, and a live read
// of the volume that the announcement stands (see onceVolumeLive). Done means that the hook succeeded in this sync, the volume
// was read live, and the announcement of that call still stands.
func runHook(volume *corev1.PersistentVolume, kind ActionKind, hook string, view View, options Options) (action Action, done bool) {
	if action, blocked := awaitAnnounced(volume, obj.VolumeKey(volume.Name), view, options); blocked {
		return action, false
	}
	rule := reclaimHookOf(kind).rule
	token := announcedToken(volume, view, options)
	answer, ran := lastOf(hook, view.Answered(kind, volume.UID))
	if ran = ran && (answer.Err != nil || answer.Token == token); !ran {
		token = unspent(token, view.Answered(kind, volume.UID))
	}
	if !StaysMeanwhile(volume) { // whoever took its finalizer off may delete it while the hook is at work
		token = 0
	}
	attachments, listed := view.AttachmentsOf(volume.Name)
	_, source := view.Volume(volume.Name)
	switch {
	case !ran && volume.DeletionTimestamp != nil && !StaysMeanwhile(volume):
		return goesMeanwhile(volume, kind), false
	case !ran && len(attachments) > 0: // one that is being deleted counts until it is gone
		return awaitUnused(volume, kind, attachedTo(attachments)).withBackoff(), false
	case !ran && token == 0:
		action, problem := announce(volume, kind, view, options)
		if problem != "" {
			action = fail(volume, reclaimHookOf(kind).failed, problem)
		}
		return action, false
	case !ran && listed != FromLiveRead:
		return ReadLive(obj.AttachmentsKey(), rule, "before its storage is reclaimed"), false
	case ran && source != FromLiveRead:
		return ReadLive(obj.VolumeKey(volume.Name), rule, "before its storage is reclaimed"), false
	case !ran: // see onceVolumeLive
		why := "its claim is gone and its reclaim policy is " + string(volume.Spec.PersistentVolumeReclaimPolicy)
		return Action{Kind: kind, Hook: hook, Volume: volume, Token: token, Rule: rule, Why: why}, false
	case answer.Err != nil:
		return notReclaimed(volume, answer), false
	}
	return Action{}, true
}

// StaysMeanwhile reports whether a volume that is being deleted stays while its storage is reclaimed. It takes no finalizer any more
// (A5), and kube-controller-manager takes off what protects it when it is not Bound.
func StaysMeanwhile(volume *corev1.PersistentVolume) bool {
	return slices.Contains(volume.Finalizers, reclaim.AnnouncementFinalizer) || slices.Contains(volume.Finalizers, reclaim.InTreeFinalizer)
}

// goesMeanwhile leaves the storage of a volume as it is that may go while a hook is at work: what is made under its name would have
// no announcement, and lose its data.
func goesMeanwhile(volume *corev1.PersistentVolume, kind ActionKind) Action {
	hook := reclaimHookOf(kind)
	message := fmt.Sprintf("volume %q was deleted before its claim, and may go at any time, so that its storage is left as it is: "+
		"whoever makes a volume of it again gives what is on it to the next claim", volume.Name)
	return wait(hook.rule, message, warning(volume, hook.failed, message))
}

// onceVolumeLive returns the call of a deleter or recycler if its volume was read live, and otherwise that read. It is the last
// one before the call: a claim that is gone stays so, but somebody who does not heed the announcement may retain the volume, or
// give it to another claim, at any moment.
func onceVolumeLive(action Action, view View) Action {
	if action.Kind != RunDeleter && action.Kind != RunRecycler {
		return action
	}
	if _, source := view.Volume(action.Volume.Name); source == FromLiveRead {
		return action
	}
	return ReadLive(obj.VolumeKey(action.Volume.Name), action.Rule, "before its storage is reclaimed")
}

// attachedTo names the nodes of attachments, each once, in order: "attached to node a, b".
func attachedTo(attachments []*storagev1.VolumeAttachment) string {
	nodes := sets.New[string]()
	for _, attachment := range attachments {
		nodes.Insert(attachment.Spec.NodeName)
	}
	return "attached to node " + strings.Join(sets.List(nodes), ", ")
}

// awaitUnused leaves a volume in its phase until its storage is not in use any more.
func awaitUnused(volume *corev1.PersistentVolume, kind ActionKind, why string) Action {
	message := "the storage is still in use: " + why
	return wait(reclaimHookOf(kind).rule, message, normal(volume, reclaimHookOf(kind).inUse, message))
}

// notReclaimed returns the action after a hook that failed, is still in progress, or was not called.
func notReclaimed(volume *corev1.PersistentVolume, answer Answer) Action {
	switch answer.hookError().Meaning {
	case hooks.InProgress:
		return answer.retry(wait("Rh", "its storage is being reclaimed"))
	case hooks.NotMine:
		return answer.retry(wait("R3", fmt.Sprintf("another controller reclaims it: %v", answer.Err)))
	case hooks.StaleToken:
		message := fmt.Sprintf("the storage has seen a larger token, of another controller or of one whose clock is ahead: %v", answer.Err)
		return answer.retry(wait("R8", message, warning(volume, reclaimHookOf(answer.Of).failed, message)))
	case hooks.TooLate, hooks.NotReturned: // nothing was tried
		message := fmt.Sprintf("its storage could not be reclaimed yet: %v", answer.Err)
		return answer.retry(wait("R8", message, warning(volume, reclaimHookOf(answer.Of).failed, message)))
	case hooks.InUse:
		return answer.retry(awaitUnused(volume, answer.Of, answer.Err.Error()))
	}
	return answer.retry(fail(volume, reclaimHookOf(answer.Of).failed, answer.Err.Error()))
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
