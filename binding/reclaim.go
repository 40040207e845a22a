package binding

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// deleteStorage is for a Released volume whose deleter is registered (R3): first the storage, then the volume,
// and last the finalizers that kept it until its storage was deleted: an external provisioner's too, which had it
// before. Each crash in between leaves a volume that says so much less than the last state that the deleter, which is
// idempotent, is run once more.
func deleteStorage(volume *corev1.PersistentVolume, hook string, view View) Action {
	answer, ran := lastOf(hook, view.Answered(RunDeleter, volume.UID))
	if !ran {
		if action, attached := awaitDetach(volume, RunDeleter, view); attached {
			return action
		}
	}
	if _, evidence := view.Volume(volume.Name); evidence != Live {
		return readLive(obj.VolumeKey(volume.Name), "R3", "before its storage is deleted")
	}
	kept := reclaim.WithoutStorage(slices.Clone(volume.Finalizers))
	switch {
	case !ran:
		return Action{Kind: RunDeleter, Hook: hook, Volume: volume, Rule: "R3", Why: "its claim is gone and its reclaim policy is Delete"}
	case answer.Err != nil:
		return notReclaimed(volume, answer, reclaim.EventFailedDelete)
	case volume.DeletionTimestamp == nil:
		return Action{Kind: DeleteVolume, Volume: volume, Rule: "R3", Why: "its storage is deleted"}
	case slices.Equal(kept, volume.Finalizers):
		return nothing("R3", "its storage is deleted, and it goes when others let it")
	}
	released := volume.DeepCopy()
	released.Finalizers = kept
	return updateVolume(released, "R3", "its storage is deleted")
}

// recycle is for a Released volume whose recycler is registered and whose claim no pod uses (R4). A crash
// before the volume is unbound leaves one that is scrubbed again.
func recycle(volume *corev1.PersistentVolume, hook string, view View) Action {
	answer, ran := lastOf(hook, view.Answered(RunRecycler, volume.UID))
	if !ran {
		if action, attached := awaitDetach(volume, RunRecycler, view); attached {
			return action
		}
	}
	if _, evidence := view.Volume(volume.Name); evidence != Live {
		return readLive(obj.VolumeKey(volume.Name), "R4", "before it is scrubbed")
	}
	switch {
	case !ran:
		return Action{Kind: RunRecycler, Hook: hook, Volume: volume, Rule: "R4", Why: "its claim is gone and its reclaim policy is Recycle"}
	case answer.Err != nil:
		return notReclaimed(volume, answer, reclaim.EventFailedRecycle)
	}
	action := updateVolume(unbind(volume), "R4", "it is scrubbed")
	action.Events = []Event{normal(volume, EventVolumeRecycled, "the volume is scrubbed, and free for another claim")}
	return action
}

// notReclaimed is for a volume whose hook did not do its work, or not yet.
func notReclaimed(volume *corev1.PersistentVolume, answer Answer, reason string) Action {
	switch answer.meaning().Meaning {
	case HookInProgress:
		return answer.later(wait("Rh", "its storage is being reclaimed"))
	case HookNotMine:
		return answer.later(wait("R3", fmt.Sprintf("somebody else reclaims it: %v", answer.Err)))
	case HookInUse:
		return answer.later(inUse(volume, answer.Of, answer.Err.Error()))
	}
	failed := fail(volume, reclaim.Decision{Verb: reclaim.Fail, EventReason: reason, Message: answer.Err.Error()})
	if failed.Kind != Wait {
		return failed
	}
	return answer.later(failed)
}

// awaitDetach holds a deleter or recycler up while the volume is attached to a node. An attachment that is being deleted
// counts until it is gone. That there is none is for the server to say, before the hook runs.
func awaitDetach(volume *corev1.PersistentVolume, hook ActionKind, view View) (action Action, blocked bool) {
	attachments, evidence := view.AttachmentsOf(volume.Name)
	if len(attachments) > 0 {
		waiting := inUse(volume, hook, attachedTo(attachments))
		waiting.Retry = RetryBackoff
		return waiting, true
	}
	return readLive(obj.AttachmentsKey(), ruleOf(hook), "before its storage is reclaimed"), evidence != Live
}

// inUse is for a volume that keeps its phase until nobody uses its storage any more.
func inUse(volume *corev1.PersistentVolume, hook ActionKind, why string) Action {
	event := EventVolumeDelete
	if hook == RunRecycler {
		event = EventVolumeFailedRecycle
	}
	message := "the storage is still in use: " + why
	return wait(ruleOf(hook), message, normal(volume, event, message))
}

// ruleOf is the rule that a deleter or recycler follows.
func ruleOf(hook ActionKind) string {
	if hook == RunRecycler {
		return "R4"
	}
	return "R3"
}

// fail is for a volume that cannot be reclaimed (R3 to R5). It is tried again, but for an unknown policy,
// which only a change of the volume mends.
func fail(volume *corev1.PersistentVolume, decision reclaim.Decision) Action {
	rule, retry := "R3", RetryBackoff
	switch decision.EventReason {
	case reclaim.EventFailedRecycle:
		rule = "R4"
	case reclaim.EventUnknownPolicy:
		rule, retry = "R5", RetryNever
	}
	reason := EventReason(decision.EventReason)
	message := oneline.Text(fmt.Sprintf("the volume cannot be reclaimed: %s", decision.Message), eventLimit)
	failed := Action{Kind: Wait, Rule: rule, Why: message, Retry: retry}
	if volume.Status.Phase != corev1.VolumeFailed || volume.Status.Message != message {
		// With the message in its status the next controller knows that it was told. A crash before this write leaves the
		// volume as it was, and reclaiming is tried again.
		failed = updateVolumeStatus(enter(volume, corev1.VolumeFailed, reason, message), rule, message)
		failed.Events = []Event{warning(volume, reason, message)}
	}
	return failed
}
