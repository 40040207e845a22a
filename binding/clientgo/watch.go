package clientgo

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// watch is the informers that report changes to workers.
type watch struct {
	runner   *Runner
	to       *workers
	factory  informers.SharedInformerFactory
	own      bool // the factory
	replaced atomic.Bool
	handlers []handler
	claims   cache.Store
	volumes  cache.Store
}

// handler reports the changes of one kind.
type handler struct {
	kind         string
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	newest       func(context.Context) (string, error) // how far the server is
	seen         *Position                             // how far it was
}

// startWatch starts the informers, unless they run already, with handlers that report to the workers.
func startWatch(ctx context.Context, r *Runner, to *workers) (*watch, error) {
	w := &watch{runner: r, to: to, factory: r.Informers}
	if w.factory == nil {
		w.own, w.factory = true, NewInformers(r.Clientset, r.Pods, r.Hooks, to.serverWentBack)
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *watch) start(ctx context.Context) error {
	core, storage := w.factory.Core().V1(), w.factory.Storage().V1()
	api, storageAPI := w.runner.Clientset.CoreV1(), w.runner.Clientset.StorageV1()
	claims, volumes := core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()
	w.claims, w.volumes = claims.GetStore(), volumes.GetStore()
	all := []handler{
		{kind: "StorageClass", informer: storage.StorageClasses().Informer(), newest: newestOf(storageAPI.StorageClasses())},
		{kind: "PersistentVolume", informer: volumes, newest: newestOf(api.PersistentVolumes())},
		{kind: "PersistentVolumeClaim", informer: claims, newest: newestOf(api.PersistentVolumeClaims(metav1.NamespaceAll))},
	}
	if w.runner.Pods == PodsWatched {
		all = append(all, handler{kind: "Pod", informer: core.Pods().Informer(), newest: newestOf(api.Pods(metav1.NamespaceAll))})
	}
	if w.runner.Hooks.Reclaims() {
		all = append(all, handler{kind: "VolumeAttachment", informer: storage.VolumeAttachments().Informer(), newest: newestOf(storageAPI.VolumeAttachments())})
	}
	if err := w.handle(all); err != nil {
		w.unhandle()
		return err
	}
	w.factory.StartWithContext(ctx)
	return nil
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

func (w *watch) handle(all []handler) error {
	for _, h := range all {
		registration, err := h.informer.AddEventHandler(w.to.handler())
		if err != nil {
			return err
		}
		h.registration, h.seen = registration, &Position{}
		w.handlers = append(w.handlers, h)
	}
	return nil
}

func (w *watch) unhandle() {
	for _, h := range w.handlers {
		_ = h.informer.RemoveEventHandler(h.registration) // it fails for handlers of another informer only
	}
	w.handlers = nil
}

// check asks the server how far it is, where informers are those of a program: they do not notice if it went back in time. If
// they do not list anew either, and so would see nothing for as long as it is behind, informers of our own take their place.
func (w *watch) check(ctx context.Context) {
	if w.own {
		return
	}
	ahead := map[cache.SharedIndexInformer]string{}
	for _, h := range w.handlers {
		before := h.informer.LastSyncResourceVersion()
		h.seen.Reached(before)
		newest, err := h.newest(ctx)
		if err != nil {
			w.to.log.WarnContext(ctx, "cannot ask how far the server is", "kind", h.kind, "error", err)
			continue
		}
		if err := h.seen.Check(newest); err != nil {
			w.to.serverWentBack(h.kind, err)
			if older(newest, before) {
				ahead[h.informer] = before
			}
		}
	}
	if Blind(ctx, ahead) && ctx.Err() == nil {
		w.replace(ctx)
	}
}

// replace watches with informers of our own from now on.
func (w *watch) replace(ctx context.Context) {
	w.to.log.WarnContext(ctx, "the informers of the program see nothing until the server has reached the resourceVersion that they had; the Runner watches by itself from now on")
	w.replaced.Store(true)
	w.unhandle()
	w.own, w.factory = true, NewInformers(w.runner.Clientset, w.runner.Pods, w.runner.Hooks, w.to.serverWentBack)
	_ = w.start(ctx) // handlers are refused by informers that have stopped only
}

// contains reports whether a store has the object, and not another one of its name.
func contains(store cache.Store, object obj.Object) bool {
	cached, ok, err := store.Get(object)
	return err == nil && ok && cached.(obj.Object).GetUID() == object.GetUID()
}

// newestOf returns what asks for the resourceVersion that the server has now, which is not that of a cache.
func newestOf[List runtime.Object](at Endpoint[List]) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
		list, err := at.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "", err
		}
		accessor, err := meta.ListAccessor(list)
		if err != nil {
			return "", err
		}
		return accessor.GetResourceVersion(), nil
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

// filled reports whether the caches of all kinds have all that exists, which those of our own have not yet where they have just
// replaced others.
func (w *watch) filled() bool {
	return !slices.ContainsFunc(w.handlers, func(h handler) bool { return !h.registration.HasSynced() })
}

// has reports whether the object is in the cache of its kind, and true where that is not watched: the cache would show none.
func (w *watch) has(object obj.Object) bool {
	kind := reflect.TypeOf(object).Elem().Name()
	i := slices.IndexFunc(w.handlers, func(h handler) bool { return h.kind == kind })
	return i < 0 || contains(w.handlers[i].informer.GetStore(), object)
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
		given := slices.Clone(w.handlers)
		go func() {
			if w.stopped(informed, given) {
				end(errStopped)
			}
		}()
	}
	return informed, func() { end(nil) }
}

// stopped waits until an informer has stopped; false if the context ended, or none of them was needed any more, before.
func (w *watch) stopped(ctx context.Context, given []handler) bool {
	ticker := time.NewTicker(stoppedWithin)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if w.replaced.Load() {
				return false
			}
			if slices.ContainsFunc(given, func(h handler) bool { return h.informer.IsStopped() }) {
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
		w.warnings.Forget(keyOf(object.(obj.Object)))
	}
	if object, ok := object.(obj.Object); ok {
		w.add(w.controller.ObserveDeleted(object)...)
		w.metrics.binding.forget(object)
	}
}
