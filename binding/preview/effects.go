package preview

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// effects compares what was written with what it was before.
func (s *simulation) effects() Effects {
	e := Effects{Phases: []PhaseChange{}, Storage: []StorageEffect{}, Blocked: []Blocked{}}
	keys := slices.SortedFunc(maps.Keys(s.touched), func(a, b obj.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys {
		before, after := s.touched[key], s.now(key)
		if was, is := phaseOf(before, "none"), phaseOf(after, "gone"); was != is && hasPhase(key) {
			e.Phases = append(e.Phases, PhaseChange{key.String(), was, is})
		}
		if blocked, ok := s.blocked(key, before, after); ok {
			e.Blocked = append(e.Blocked, blocked)
		}
	}
	e.Storage = append(e.Storage, s.storageEffects(keys)...)
	return e
}

// now returns the object as it stands; nil if it does not exist.
func (s *simulation) now(key obj.Key) obj.Object {
	object, err := s.server.Get(context.Background(), key)
	if err != nil {
		return nil
	}
	return object
}

func hasPhase(key obj.Key) bool {
	return key.Kind == obj.KindVolume || key.Kind == obj.KindClaim
}

// phaseOf returns the phase of a volume or claim, or the given word if there is none; "" for other kinds.
func phaseOf(object obj.Object, none string) string {
	switch o := object.(type) {
	case nil:
		return none
	case *corev1.PersistentVolume:
		return string(o.Status.Phase)
	case *corev1.PersistentVolumeClaim:
		return string(o.Status.Phase)
	}
	return ""
}

// blocked says what holds an object that is to be deleted, if it is still there.
func (s *simulation) blocked(key obj.Key, before, after obj.Object) (Blocked, bool) {
	if after == nil || after.GetDeletionTimestamp() == nil {
		return Blocked{}, false
	}
	already := before != nil && before.GetDeletionTimestamp() != nil
	if already && !s.deleted[key] {
		return Blocked{}, false
	}
	held := Blocked{Object: key.String(), Finalizers: after.GetFinalizers()}
	switch o := after.(type) {
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && o.Status.Phase == corev1.VolumeBound {
			held.Users = []string{obj.ClaimKey(ref.Namespace, ref.Name).String()}
		}
	case *corev1.PersistentVolumeClaim:
		held.Users = s.podsOn(o)
	}
	return held, true
}

// nodesOf returns the nodes that the volume is attached to, in order.
func (s *simulation) nodesOf(volume *corev1.PersistentVolume) []string {
	if s.attached == nil {
		s.attached = map[string][]string{}
		attachments, _ := s.server.ListAttachments(context.Background())
		for _, attachment := range attachments {
			if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
				s.attached[*name] = append(s.attached[*name], attachment.Spec.NodeName)
			}
		}
		for _, nodes := range s.attached {
			slices.Sort(nodes)
		}
	}
	return slices.Compact(slices.Clone(s.attached[volume.Name]))
}

// users are the pods that name a claim.
type users map[obj.Key][]*corev1.Pod

// podsOn returns the pods that keep the claim (F2).
func (s *simulation) podsOn(claim *corev1.PersistentVolumeClaim) (names []string) {
	if s.users == nil {
		s.users = users{}
		pods, _ := s.server.ListPods(context.Background(), "")
		for _, pod := range pods {
			for _, name := range reclaim.ClaimNames(pod) {
				key := obj.ClaimKey(pod.Namespace, name)
				s.users[key] = append(s.users[key], pod)
			}
		}
	}
	for _, pod := range s.users[obj.KeyOf(claim)] {
		if reclaim.UsesClaim(pod, claim) {
			names = append(names, bindingtest.PodKey(pod.Namespace, pod.Name).String())
		}
	}
	return names
}
