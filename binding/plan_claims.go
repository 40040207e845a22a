package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// AbsentError is a claim that a pod names and that is not known (S1). The claim of a generic ephemeral
// volume comes shortly after its pod.
type AbsentError struct{ Pod, Claim obj.Key }

func (e *AbsentError) Error() string {
	return e.Pod.String() + ": the claim " + e.Claim.String() + " does not exist"
}

// claimNameOf is the name of the claim that a pod's volume stands for, and whether that claim must be the
// pod's own (S1); "" for a volume of another kind.
func claimNameOf(pod *corev1.Pod, volume *corev1.Volume) (name string, owned bool) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName, false
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name, true
	}
	return "", false
}

// claimsNamedBy looks up the claims that a pod names, each once, in the order of their names.
func claimsNamedBy(pod *corev1.Pod, view PairView) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	for i := range pod.Spec.Volumes {
		name, owned := claimNameOf(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, _ := view.Claim(pod.Namespace, name)
		if claim == nil {
			return nil, &AbsentError{obj.KeyOfPod(pod), obj.ClaimKey(pod.Namespace, name)}
		}
		if owned && !metav1.IsControlledBy(claim, pod) {
			return nil, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.ownerReferences", Problem: "does not name " + obj.KeyOfPod(pod).String() + " as its controller"}
		}
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(claims, func(a, b *corev1.PersistentVolumeClaim) bool { return a.Name == b.Name }), nil
}

// refusedClaim is why no pod can use the claim, whatever the node (S1).
func refusedClaim(claim *corev1.PersistentVolumeClaim) (PodReason, bool) {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return PodReason{CauseClaimLost, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim has lost its volume"}, true
	case claim.DeletionTimestamp != nil:
		return PodReason{CauseClaimDeleting, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim is being deleted"}, true
	}
	return PodReason{}, false
}

// fullyBound is S2's idea of a bound claim.
func fullyBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && phase.BindCompleted(claim)
}

// mustBind is why the claim has to be bound before a node is chosen (S2); none for one that waits for the node.
func mustBind(claim *corev1.PersistentVolumeClaim, view PodView) (PodReason, bool, error) {
	name := storageclass.OfClaim(claim)
	class := view.Class(name)
	waits, err := match.WaitsForConsumer(class)
	if err != nil {
		return PodReason{}, false, err
	}
	reason := PodReason{CauseClaimUnbound, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim is to be bound without regard to the node, and is not yet bound"}
	switch {
	case claim.Spec.VolumeName != "":
		reason.Detail = "the claim names a volume and is not yet bound to it"
	case waits:
		return PodReason{}, false, nil
	case class == nil && name != "":
		reason.Detail = "the claim is not bound, and its class " + name + " does not exist"
	}
	return reason, true, nil
}
