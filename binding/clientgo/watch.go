package clientgo

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// watch is what tells a crew of changes.
type watch struct {
	factory  informers.SharedInformerFactory
	own      bool // the factory
	handlers []handler
	claims   cache.Store
	volumes  cache.Store
}

type handler struct {
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
}

// startWatch starts the informers, unless they run already, and has the crew told of what they see.
func startWatch(ctx context.Context, r *Runner, crew *crew) (*watch, error) {
	w := &watch{factory: r.Informers, own: r.Informers == nil}
	if w.own {
		w.factory = newInformers(r)
	}
	core, storage := w.factory.Core().V1(), w.factory.Storage().V1()
	all := []cache.SharedIndexInformer{
		storage.StorageClasses().Informer(),
		core.PersistentVolumes().Informer(),
		core.PersistentVolumeClaims().Informer(),
	}
	if r.Pods == PodsWatched {
		all = append(all, core.Pods().Informer())
	}
	if r.Hooks.Reclaims() {
		all = append(all, storage.VolumeAttachments().Informer())
	}
	w.volumes, w.claims = all[1].GetStore(), all[2].GetStore()

	if err := w.handle(all, crew); err != nil {
		w.unhandle()
		return nil, err
	}
	w.factory.StartWithContext(ctx)
	return w, nil
}

// stop ends what was started, once the context has ended. Informers of others may still be in use.
func (w *watch) stop() {
	w.unhandle()
	if w.own {
		Shutdown(w.factory)
	}
}

// shutdownWithin is how long informers may take to end.
const shutdownWithin = time.Second

// Shutdown waits until informers whose context has ended have come to their end, as the factory's own Shutdown does, but
// no longer than a second: one that is refused a connection before its list has come sleeps for up to a minute, and sees
// only then that it is to end. It does nothing any more.
func Shutdown(factory informers.SharedInformerFactory) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		factory.Shutdown()
	}()
	select {
	case <-ended:
	case <-time.After(shutdownWithin):
	}
}

func (w *watch) handle(all []cache.SharedIndexInformer, crew *crew) error {
	for _, informer := range all {
		registration, err := informer.AddEventHandler(crew.handler())
		if err != nil {
			return err
		}
		w.handlers = append(w.handlers, handler{informer, registration})
	}
	return nil
}

func (w *watch) unhandle() {
	for _, h := range w.handlers {
		_ = h.informer.RemoveEventHandler(h.registration) // it fails for handlers of another informer only
	}
}

// synced waits until the crew has been told of all there is; false if the context ended before.
func (w *watch) synced(ctx context.Context) bool {
	var checkers []cache.DoneChecker
	for _, h := range w.handlers {
		checkers = append(checkers, h.registration.HasSyncedChecker())
	}
	return cache.WaitFor(ctx, "", checkers...)
}

// objects are all volumes and claims.
func (w *watch) objects() []obj.Object {
	var objects []obj.Object
	for _, object := range append(w.volumes.List(), w.claims.List()...) {
		objects = append(objects, object.(obj.Object))
	}
	return objects
}

// has reports whether an informer has shown the object.
func (w *watch) has(object obj.Object) bool {
	store := w.volumes
	if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
		store = w.claims
	}
	shown, ok, err := store.Get(object)
	if err != nil || !ok {
		return false
	}
	return shown.(obj.Object).GetUID() == object.GetUID()
}
