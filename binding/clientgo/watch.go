package clientgo

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// watch is the informers that report changes to workers.
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

// startWatch starts the informers, unless they run already, with handlers that report to the workers.
func startWatch(ctx context.Context, r *Runner, to *workers) (*watch, error) {
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

	if err := w.handle(all, to); err != nil {
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

func (w *watch) handle(all []cache.SharedIndexInformer, to *workers) error {
	for _, informer := range all {
		registration, err := informer.AddEventHandler(to.handler())
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

// synced waits until all that exists has been reported; false if the context ended before.
func (w *watch) synced(ctx context.Context) bool {
	var checkers []cache.DoneChecker
	for _, h := range w.handlers {
		checkers = append(checkers, h.registration.HasSyncedChecker())
	}
	return cache.WaitFor(ctx, "", checkers...)
}

// objects returns all volumes and claims in the caches.
func (w *watch) objects() []obj.Object {
	var objects []obj.Object
	for _, object := range append(w.volumes.List(), w.claims.List()...) {
		objects = append(objects, object.(obj.Object))
	}
	return objects
}

// has reports whether the object is in a cache.
func (w *watch) has(object obj.Object) bool {
	store := w.volumes
	if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
		store = w.claims
	}
	cached, ok, err := store.Get(object)
	if err != nil || !ok {
		return false
	}
	return cached.(obj.Object).GetUID() == object.GetUID()
}

// errStopped is the error of informers of others that were stopped: without them no change would be reported any more.
var errStopped = errors.New("somebody has stopped them")

// stoppedWithin is how soon it is noticed that informers have stopped, which they do not report.
const stoppedWithin = time.Second

// informed returns a context that ends with the given one, or once informers of others have stopped. The function ends
// it.
func (w *watch) informed(ctx context.Context) (context.Context, func()) {
	informed, end := context.WithCancelCause(ctx)
	if !w.own {
		go func() {
			if w.stopped(informed) {
				end(errStopped)
			}
		}()
	}
	return informed, func() { end(nil) }
}

// stopped waits until an informer has stopped; false if the context ended before.
func (w *watch) stopped(ctx context.Context) bool {
	ticker := time.NewTicker(stoppedWithin)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if slices.ContainsFunc(w.handlers, func(h handler) bool { return h.informer.IsStopped() }) {
				return ctx.Err() == nil
			}
		}
	}
}

// handler returns what reports the events of one informer.
func (w *workers) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    w.observe,
		UpdateFunc: w.update,
		DeleteFunc: w.observeDeleted,
	}
}

// update takes two versions of one object, or an object and its successor of the same name, if the end of the first was
// missed and only a new list shows the second.
func (w *workers) update(old, new any) {
	before, known := old.(obj.Object)
	after, ok := new.(obj.Object)
	if known && ok && before.GetUID() != after.GetUID() {
		w.observeDeleted(before)
	}
	w.observe(new)
}

func (w *workers) observe(object any) {
	switch object := object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		w.unconfirmed.shown(object.(obj.Object))
		w.add(w.controller.Observe(object.(obj.Object))...)
		w.metrics.binding.observe(object.(obj.Object))
	case obj.Object:
		w.add(w.controller.Recheck(object)...) // an informer is their only source: the last version is the newest (W7)
	}
}

// observeDeleted takes the last known state of an object, which may be out of date if the deletion was missed and only a
// new list shows it.
func (w *workers) observeDeleted(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	switch object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		w.unconfirmed.end(object.(obj.Object))
	}
	if object, ok := object.(obj.Object); ok {
		w.add(w.controller.ObserveDeleted(object)...)
		w.metrics.binding.forget(object)
	}
}
