package clientgo

import (
	"runtime"
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

// catchUp reports what the stores have of volumes and of the claims of the pod. Volumes are looked at one by one only if what was
// reported is not soon as new as the store: that is so once after each bookmark, and always if client-go's feature AtomicFIFO is off.
func (s *stores) catchUp(to *executor.Executor, pod *corev1.Pod) {
	if version, caughtUp := s.awaitReported(); !caughtUp {
		for _, volume := range to.Unreported(s.all) {
			to.ObserveStored(volume, func() obj.Object { return s.volume(volume.GetName()) })
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

// yields is how often a handler that is behind is let run first. It takes microseconds for a change, all volumes take milliseconds.
const yields = 50

// awaitReported returns the version of the store, and whether all of it was reported.
func (s *stores) awaitReported() (version string, all bool) {
	for range yields {
		version = s.volumes.LastStoreSyncResourceVersion()
		if version == "" {
			return "", false
		}
		if version == s.reported.Load() || version == s.compared.Load() {
			return version, true
		}
		runtime.Gosched()
	}
	return version, false
}

// all yields all volumes.
func (s *stores) all(yield func(obj.Object) bool) {
	for _, stored := range s.volumes.List() {
		if !yield(stored.(*corev1.PersistentVolume)) {
			return
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
