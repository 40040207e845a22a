package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// users are the names of the pods that use a claim on a node, by the claim.
type users map[obj.Key][]string

func usersOf(objects []obj.Object) users {
	u := users{}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !ended(pod) {
			u.add(pod)
		}
	}
	return u
}

// ended is what a scheduler goes by: a pod that is being deleted still uses its claims.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (u users) add(pod *corev1.Pod) {
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		u[key] = append(u[key], pod.Name)
	}
}

// refuse is why the pod has to wait for others that use its claims; "" if it need not.
func (u users) refuse(pod *corev1.Pod, view binding.PairView) string {
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		claim, _ := view.Claim(pod.Namespace, name)
		if claim == nil {
			continue
		}
		if modes, err := accessmode.Of(claim.Spec.AccessModes...); err == nil && !modes.AllowsPod(pod.Name, u[key]...) {
			return fmt.Sprintf("%s is for one pod at a time, and pod %s uses it", key, u[key][0])
		}
	}
	return ""
}
