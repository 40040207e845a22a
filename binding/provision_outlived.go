package binding

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// outlived is for storage that a sync may have made for a claim which was gone by then: an old leader that has not
// noticed runs its provisioner, and the new one has already let the claim go. Nobody but the one who made it knows of
// it. It is deleted unless a volume stands for it, which is reclaimed as any other. What was never a volume is attached
// nowhere: an attachment names its volume. uid is that of the claim there is
// now under the name, if any.
func outlived(claim obj.Key, uid types.UID, made []Answer, view View, rules Rules) (action Action, left bool) {
	for _, answer := range made {
		if answer.Of != RunProvisioner || answer.For == uid || !rules.Hooks.Deleters.Has(answer.Hook) {
			continue
		}
		volume := traceOf(claim, answer)
		deleted := view.Answered(RunDeleter, answer.For)
		stored, evidence := view.Volume(volume.Name)
		switch {
		case stored != nil || len(deleted) >= createTries || len(deleted) > 0 && deleted[len(deleted)-1].Err == nil:
			continue
		case !evidence.Proven():
			return readLive(obj.VolumeKey(volume.Name), "P2", "before what was made for a claim that is gone is deleted"), true
		}
		return Action{Kind: RunDeleter, Hook: answer.Hook, Volume: volume, Rule: "P2", Why: "it was made for a claim that is gone"}, true
	}
	return Action{}, false
}

// traceOf is the volume that storage was made for, as far as a deleter needs it.
func traceOf(claim obj.Key, made Answer) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	if made.Volume != nil {
		volume = made.Volume.DeepCopy()
	}
	volume.ObjectMeta = metav1.ObjectMeta{
		Name:        provisionedName(made.For),
		Annotations: map[string]string{phase.ProvisionedByAnnotation: made.Hook},
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: string(obj.KindClaim), APIVersion: corev1.SchemeGroupVersion.String(), Namespace: claim.Namespace, Name: claim.Name, UID: made.For,
	}
	return volume
}
