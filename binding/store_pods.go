package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

func (s *store) putPod(pod *corev1.Pod) (old *corev1.Pod, stored bool) {
	name := obj.KeyOfPod(pod)
	old = s.pods[name]
	if s.gonePods.has(pod.UID) || old != nil && !obj.Newer(pod, old) {
		return old, false
	}
	for _, claim := range claimsOf(old) {
		s.using.move(claim, obj.Key{}, name)
	}
	for _, claim := range claimsOf(pod) {
		s.using.move(obj.Key{}, claim, name)
	}
	zeromap.Put(&s.pods, name, pod)
	return old, true
}

func (s *store) dropPod(pod *corev1.Pod) *corev1.Pod {
	s.gonePods.bury(pod.UID)
	name := obj.KeyOfPod(pod)
	old := s.pods[name]
	if old == nil || old.UID != pod.UID {
		return nil
	}
	for _, claim := range claimsOf(old) {
		s.using.move(claim, obj.Key{}, name)
	}
	delete(s.pods, name)
	return old
}

func claimsOf(pod *corev1.Pod) []obj.Key {
	if pod == nil {
		return nil
	}
	var keys []obj.Key
	for _, name := range reclaim.ClaimNames(pod) {
		keys = append(keys, obj.ClaimKey(pod.Namespace, name))
	}
	return keys
}
