package controllerruntime

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

type queue = workqueue.TypedRateLimitingInterface[obj.Key]

// watch has the manager tell of changes, and sync what follows from them.
func (r *Reconciler) watch(mgr manager.Manager) error {
	options := r.Options
	options.MaxConcurrentReconciles = cmp.Or(options.MaxConcurrentReconciles, defaultConcurrency)
	options.RateLimiter = &r.delays
	build := builder.TypedControllerManagedBy[obj.Key](mgr).
		Named("pvbind").
		WithOptions(options).
		WatchesRawSource(source.TypedFunc[obj.Key](func(_ context.Context, queue queue) error {
			r.queue = queue
			return nil
		})).
		Watches(&storagev1.StorageClass{}, r.handler()).
		Watches(&corev1.PersistentVolume{}, r.handler()).
		Watches(&corev1.PersistentVolumeClaim{}, r.handler())
	if r.Pods == clientgo.PodsWatched {
		build = build.Watches(&corev1.Pod{}, r.handler())
	}
	if r.Hooks.Reclaims() {
		build = build.Watches(&storagev1.VolumeAttachment{}, r.handler())
	}
	return build.Complete(r)
}

// handler tells the controller of what the manager's cache sees.
func (r *Reconciler) handler() handler.TypedEventHandler[client.Object, obj.Key] {
	return handler.TypedFuncs[client.Object, obj.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], queue queue) {
			add(queue, r.controller.Observe(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], queue queue) {
			add(queue, r.update(e.ObjectOld, e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], queue queue) {
			add(queue, r.controller.ObserveDeleted(e.Object))
		},
	}
}

// update takes two versions of one object; the same version twice, if the cache resyncs; or what a new list has under
// the name of another object that went unnoticed.
func (r *Reconciler) update(old, new client.Object) []obj.Key {
	var keys []obj.Key
	switch {
	case old.GetUID() != new.GetUID():
		keys = r.controller.ObserveDeleted(old)
	case old.GetResourceVersion() == new.GetResourceVersion():
		return r.controller.Recheck(new)
	}
	return append(keys, r.controller.Observe(new)...)
}
