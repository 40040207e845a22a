package clientgo

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
	"github.com/pvbind/pvbind/reclaim"
)

// stores are those of informers. They are ahead of what the informers have reported: an informer stores a change and then tells its
// handlers, each in a goroutine of its own. If the scheduler's handler is told first, it tries a pod again that an
// Executor would reject for want of what that handler has seen; and as nothing changes after that, nobody would try again.
type stores struct {
	volumes cache.Store
	claims  corelisters.PersistentVolumeClaimLister
	// reported is the resourceVersion of the last change of a volume that was reported, compared that of the store when all
	// volumes were compared.
	reported, compared atomic.Value
}

// noting returns a handler that notes the version of each volume once another has handled it.
func (s *stores) noting(then cache.ResourceEventHandler) cache.ResourceEventHandler {
	note := func(object any) {
		if volume, ok := object.(*corev1.PersistentVolume); ok {
			s.reported.Store(volume.ResourceVersion)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { then.OnAdd(object, initial); note(object) },
		UpdateFunc: func(before, now any) { then.OnUpdate(before, now); note(now) },
		DeleteFunc: func(object any) { then.OnDelete(object); note(object) },
	}
}

// catchUp reports what the stores have of volumes and of the claims of the pod. Volumes are looked at one by one only where the store
// is of another version than what was reported: for a moment after each change, and once after each bookmark.
func (s *stores) catchUp(to *executor.Executor, pod *corev1.Pod) {
	version := s.volumes.LastStoreSyncResourceVersion() // "" if client-go's feature AtomicFIFO is off
	if version == "" || version != s.reported.Load() && version != s.compared.Load() {
		for _, stored := range s.volumes.List() {
			volume := stored.(*corev1.PersistentVolume)
			to.ObserveStored(volume, func() obj.Object { return s.volume(volume.Name) })
		}
		s.compared.Store(version)
	}
	for i := range pod.Spec.Volumes {
		if name := reclaim.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			look := func() obj.Object { return s.claim(pod.Namespace, name) }
			to.ObserveStored(look(), look)
		}
	}
}

func (s *stores) volume(name string) obj.Object {
	if stored, found, _ := s.volumes.GetByKey(name); found {
		return stored.(*corev1.PersistentVolume)
	}
	return nil
}

func (s *stores) claim(namespace, name string) obj.Object {
	if claim, err := s.claims.PersistentVolumeClaims(namespace).Get(name); err == nil {
		return claim
	}
	return nil
}
