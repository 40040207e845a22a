package judge

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// Untold returns the objects of a settled world that are stuck without anybody being told (X10), each with what it is stuck in. A
// controller that starts in that world tells of it by an event on the object, an error of its sync, a message in its status,
// or has something left to do for it: a write, a hook, or a sync after some time.
func Untold(rules decision.Options, objects []obj.Object, tells func(decision.Event) bool) (broken []string) {
	rules.Identity = "a controller that starts"
	for _, object := range objects {
		if why := stuck(rules, object, testkit.Knowing(objects...)); why != "" && !told(rules, objects, KeyOf(object), tells) {
			broken = append(broken, fmt.Sprintf("X10: %s is stuck, and nobody is told: %s", KeyOf(object), why))
		}
	}
	return broken
}

// EveryEvent is what sends all events.
func EveryEvent(decision.Event) bool { return true }

// stuck returns why an object has not come to the end that it is meant to have; "" if it has, or if its end is left to somebody
// who was asked for it: a person who named a volume that there is not (C6) or put a finalizer on it, or another provisioner.
func stuck(rules decision.Options, object obj.Object, world decision.Snapshot) string {
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return stuckClaim(object, world)
	case *corev1.PersistentVolume:
		return stuckVolume(rules, object, world)
	}
	return ""
}

func stuckClaim(claim *corev1.PersistentVolumeClaim, world decision.Snapshot) string {
	named, _ := world.Volume(claim.Spec.VolumeName)
	switch {
	case claim.DeletionTimestamp != nil && slices.Contains(claim.Finalizers, decision.ProvisioningFinalizer):
		return "it is being deleted, and what was made for it may be left"
	case claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimPending: // that it is Lost its status tells
		return ""
	case claim.Spec.VolumeName != "" && named == nil && !phase.BindCompleted(claim):
		return ""
	}
	return "it is Pending"
}

func stuckVolume(rules decision.Options, volume *corev1.PersistentVolume, world decision.Snapshot) string {
	ref := volume.Spec.ClaimRef
	var claim *corev1.PersistentVolumeClaim
	if ref != nil && ref.UID != "" {
		claim, _ = world.Claim(ref.Namespace, ref.Name)
	}
	ending := claim != nil && claim.DeletionTimestamp != nil
	verdict := reclaim.Decide(volume, reclaim.Options{Migrations: rules.Migrations, Deleters: rules.Hooks.Deleters,
		SourceDeleters: rules.Hooks.SourceDeleters, Recyclers: rules.Hooks.Recyclers})
	switch ours := keptByUs(rules, volume); {
	case volume.DeletionTimestamp != nil && !ours:
		return ""
	case volume.DeletionTimestamp != nil && volume.Status.Phase != corev1.VolumeBound && verdict.Action != reclaim.LeaveToProvisioner:
		return "it is being deleted, and " + strings.Join(volume.Finalizers, ", ") + " keep it"
	case volume.Status.Phase == corev1.VolumeFailed && volume.Status.Message == "":
		return "it is Failed without a message"
	case volume.Status.Phase == corev1.VolumeReleased && ending && claim.UID == ref.UID:
		return "" // a person has written that claim into its claimRef: it is reclaimed once that is gone
	case volume.Status.Phase == corev1.VolumeReleased && (verdict.Action == reclaim.RunDeleter || verdict.Action == reclaim.RunRecycler || verdict.Action == reclaim.Fail):
		return "it is Released, and is not reclaimed"
	case (ref == nil || ref.UID == "") && (volume.Status.Phase == corev1.VolumeBound || volume.Status.Phase == corev1.VolumePending):
		return "it is " + string(volume.Status.Phase) + ", and no claim has it by its claimRef"
	case ref == nil || ref.UID == "" || volume.Status.Phase != corev1.VolumePending && volume.Status.Phase != corev1.VolumeAvailable:
		return ""
	}
	if ending || claim != nil && claim.Status.Phase == corev1.ClaimLost {
		return "" // its binding is neither finished nor taken back (C12), or its claim tells that it is Lost
	}
	return "it is " + string(volume.Status.Phase) + ", and has the claimRef of a claim"
}

// keptByUs reports whether nothing but the finalizers that a controller with these rules removes keeps the volume.
func keptByUs(rules decision.Options, volume *corev1.PersistentVolume) bool {
	return !slices.ContainsFunc(volume.Finalizers, func(finalizer string) bool {
		return finalizer != reclaim.InTreeFinalizer && finalizer != reclaim.AnnouncementFinalizer && (finalizer != reclaim.VolumeProtection || rules.Protection != decision.ProtectionOn)
	})
}

// told reports whether a controller that starts tells of the object, or has something left to do for it.
func told(rules decision.Options, objects []obj.Object, about obj.Key, tells func(decision.Event) bool) bool {
	state := engine.New(testkit.Unprotected(rules), 10)
	var keys []obj.Key
	for _, object := range objects {
		state.Observe(object)
		if key := KeyOf(object); key != (obj.Key{}) {
			keys = append(keys, key)
		}
	}
	for _, key := range append(keys, about) { // which another may have come first of (V1)
		step := state.Start(key)
		for {
			if slices.ContainsFunc(step.Publish, func(event decision.Event) bool { return event.On == about && tells(event) }) {
				return true
			}
			if step.Done {
				break
			}
			if step.Action.Kind != decision.Read {
				return true // its controller has not come to an end
			}
			step = state.Proceed(key, answer(step.Action.Key, objects))
		}
		if key == about && (step.After > 0 || step.Err != nil) {
			return true
		}
	}
	return false
}

// answer answers a live read.
func answer(read obj.Key, objects []obj.Object) engine.Reply {
	world := testkit.Knowing(objects...)
	switch read.Kind {
	case obj.KindPods:
		return engine.Reply{Pods: slices.DeleteFunc(world.Pods, func(pod *corev1.Pod) bool { return pod.Namespace != read.Namespace })}
	case obj.KindAttachments:
		return engine.Reply{Attachments: slices.Clone[[]*storagev1.VolumeAttachment](world.Attachments)}
	}
	if read == obj.ClaimsKey() {
		return engine.Reply{Claims: world.Claims}
	}
	for _, object := range objects {
		if KeyOf(object) == read {
			return engine.Reply{Object: object}
		}
	}
	return engine.Reply{Err: testkit.NotFoundError(read)}
}
