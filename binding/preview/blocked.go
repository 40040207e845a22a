package preview

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// blocked says what holds an object that is to be deleted, if it is still there.
func (w *world) blocked(key obj.Key, before, after obj.Object) (Blocked, bool) {
	if after == nil || after.GetDeletionTimestamp() == nil {
		return Blocked{}, false
	}
	already := before != nil && before.GetDeletionTimestamp() != nil
	if already && !w.deleted[key] {
		return Blocked{}, false
	}
	held := Blocked{Object: key.String(), Finalizers: after.GetFinalizers()}
	switch o := after.(type) {
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && o.Status.Phase == corev1.VolumeBound {
			held.Users = []string{obj.ClaimKey(ref.Namespace, ref.Name).String()}
		}
	case *corev1.PersistentVolumeClaim:
		held.Users = w.podsOn(o)
	}
	return held, true
}

// nodesOf are the nodes that the volume is attached to, in order.
func (w *world) nodesOf(volume *corev1.PersistentVolume) []string {
	if w.attached == nil {
		w.attached = map[string][]string{}
		attachments, _ := w.server.ListAttachments(context.Background())
		for _, attachment := range attachments {
			if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
				w.attached[*name] = append(w.attached[*name], attachment.Spec.NodeName)
			}
		}
		for _, nodes := range w.attached {
			slices.Sort(nodes)
		}
	}
	return slices.Compact(slices.Clone(w.attached[volume.Name]))
}

// users are the pods that name a claim.
type users map[obj.Key][]*corev1.Pod

// podsOn are the pods that keep the claim (F2).
func (w *world) podsOn(claim *corev1.PersistentVolumeClaim) (names []string) {
	if w.users == nil {
		w.users = users{}
		pods, _ := w.server.ListPods(context.Background(), "")
		for _, pod := range pods {
			for _, name := range reclaim.ClaimNames(pod) {
				key := obj.ClaimKey(pod.Namespace, name)
				w.users[key] = append(w.users[key], pod)
			}
		}
	}
	for _, pod := range w.users[obj.KeyOf(claim)] {
		if reclaim.UsesClaim(pod, claim) {
			names = append(names, bindingtest.PodKey(pod.Namespace, pod.Name).String())
		}
	}
	return names
}
