package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/reclaim"
)

func (s *store) putPod(pod *corev1.Pod) (old *corev1.Pod, stored bool) {
	name := podKey(pod)
	old = s.pods[name]
	if s.gonePods.has(pod.UID) || old != nil && !newer(pod, old) {
		return old, false
	}
	for _, claim := range claimsOf(old) {
		s.using.move(claim, Key{}, name)
	}
	for _, claim := range claimsOf(pod) {
		s.using.move(Key{}, claim, name)
	}
	put(&s.pods, name, pod)
	return old, true
}

func (s *store) dropPod(pod *corev1.Pod) *corev1.Pod {
	s.gonePods.bury(pod.UID)
	name := podKey(pod)
	old := s.pods[name]
	if old == nil || old.UID != pod.UID {
		return nil
	}
	for _, claim := range claimsOf(old) {
		s.using.move(claim, Key{}, name)
	}
	delete(s.pods, name)
	return old
}

func claimsOf(pod *corev1.Pod) []Key {
	if pod == nil {
		return nil
	}
	var keys []Key
	for _, name := range reclaim.ClaimNames(pod) {
		keys = append(keys, ClaimKey(pod.Namespace, name))
	}
	return keys
}
