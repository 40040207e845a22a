package schedulerplugin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/reclaim"
)

// refused returns the status of a pod that must wait whatever the node: for a claim to come, to go, or to be bound. The error is the
// planner's, and nil if it refused the pod. One that is about none of these is malformed, which no event will mend.
func refused(pod *corev1.Pod, view scheduling.ObjectView, err error) *framework.Status {
	reason := unusable(pod, view)
	switch {
	case reason != "":
	case err == nil:
		reason = scheduling.UnboundImmediate
	default:
		return framework.AsStatus(err)
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
}

// unusable returns why the first claim of the pod that cannot be used cannot, in kube-scheduler's words; "" if all can be.
func unusable(pod *corev1.Pod, view scheduling.ObjectView) string {
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name := reclaim.ClaimName(pod, source)
		if name == "" {
			continue
		}
		claim, _ := view.Claim(pod.Namespace, name)
		switch {
		case claim == nil && source.Ephemeral != nil:
			return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found", name)
		case claim.Status.Phase == corev1.ClaimLost:
			return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName)
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
		case source.Ephemeral != nil && !metav1.IsControlledBy(claim, pod):
			return fmt.Sprintf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, claim.Name, pod.Namespace, pod.Name)
		}
	}
	return ""
}
