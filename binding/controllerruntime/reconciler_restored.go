package controllerruntime

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

var _ subject = (*Reconciler)(nil)

// watchRestores has it noticed, in a manager, when the server went back in time.
func (r *Reconciler) watchRestores(mgr manager.Manager) error {
	s := &r.restores
	if err := s.setUp(mgr); err != nil {
		return err
	}
	s.subject, s.period = r, r.Resync
	if r.Client != nil {
		s.live = Client{Client: r.Client}.live()
	}
	s.kinds = []*watchedKind{
		{name: "StorageClass", object: &storagev1.StorageClass{}, list: &storagev1.StorageClassList{}},
		{name: "PersistentVolume", object: &corev1.PersistentVolume{}, list: &corev1.PersistentVolumeList{}},
		{name: "PersistentVolumeClaim", object: &corev1.PersistentVolumeClaim{}, list: &corev1.PersistentVolumeClaimList{}},
	}
	if r.Pods == clientgo.PodsWatched {
		s.kinds = append(s.kinds, &watchedKind{name: "Pod", object: &corev1.Pod{}, list: &corev1.PodList{}})
	}
	if r.Hooks.Reclaims() {
		s.kinds = append(s.kinds, &watchedKind{name: "VolumeAttachment", object: &storagev1.VolumeAttachment{}, list: &storagev1.VolumeAttachmentList{}})
	}
	return mgr.Add(s)
}

// serverWentBack has all that is known read anew.
func (r *Reconciler) serverWentBack(kind string, err error) {
	keys := r.controller.ObserveRestore()
	r.restores.log.Error(err, "the server went back in time; nothing is destroyed until every claim and volume has been read anew", "kind", kind, "objects", len(keys))
	add(r.queue, keys)
}

func (r *Reconciler) serverWentBackAgain() {
	add(r.queue, r.controller.ObserveRestoreAgain())
}

// replace reports by informers of our own, until the context ends, what happens in the namespaces of the manager's cache.
func (r *Reconciler) replace(ctx context.Context) {
	s := &r.restores
	s.log.Info(blindCache)
	r.blind.Store(true)
	r.own = clientgo.NewInformers(s.clientset, r.Pods, r.Hooks, s.notice)
	for _, kind := range s.kinds {
		_, _ = r.informerOf(ctx, kind.object).AddEventHandler(toolscache.FilteringResourceEventHandler{ // informers that have not begun take it
			FilterFunc: func(object any) bool { return s.covers(ctx, object) },
			Handler: toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(object any) { add(r.queue, r.observe(object.(client.Object))) },
				UpdateFunc: func(old, new any) { add(r.queue, r.update(old.(client.Object), new.(client.Object))) },
				DeleteFunc: func(object any) { add(r.queue, r.observeDeleted(object)) },
			},
		})
	}
	r.own.StartWithContext(ctx)
}

// recheck compares what the controller knows with what the caches of all watched kinds have, once these have all that exists. A claim or a
// volume that no cache has is read, and an object of another kind forgotten, for nobody will tell of its end. What a cache has in another
// version than is known, or though it is known to be gone, is read, for nobody will tell of it once more: so it is after a restore of
// etcd whose revisions go on, which no list shows. What is known as the cache has it costs nothing.
func (r *Reconciler) recheck(ctx context.Context) {
	if !r.begun.Load() {
		return
	}
	informers := map[reflect.Type]toolscache.SharedIndexInformer{}
	for _, kind := range r.restores.kinds {
		informer := r.informerOf(ctx, kind.object)
		if informer != nil && !informer.HasSynced() {
			return
		}
		informers[reflect.TypeOf(kind.object)] = informer
	}
	keys := r.controller.RecheckKnown(func(object obj.Object) bool {
		informer, watched := informers[reflect.TypeOf(object)]
		return !watched || r.restores.cached(ctx, informer, object)
	})
	for _, key := range keys {
		r.warnings.Forget(key)
	}
	volumes, claims := informers[reflect.TypeFor[*corev1.PersistentVolume]()], informers[reflect.TypeFor[*corev1.PersistentVolumeClaim]()]
	cached := r.restores.objects(ctx, volumes, &corev1.PersistentVolumeList{})
	for _, object := range append(cached, r.restores.objects(ctx, claims, &corev1.PersistentVolumeClaimList{})...) {
		if !r.controller.Knows(object) && r.restores.covers(ctx, object) {
			keys = append(keys, r.controller.Recheck(object)...)
		}
	}
	add(r.queue, keys)
}

// informerOf returns the informer that reports a kind that is watched: our own where the cache of the manager is blind, and nil where that
// has several.
func (r *Reconciler) informerOf(ctx context.Context, object client.Object) toolscache.SharedIndexInformer {
	if r.own != nil {
		return r.own.InformerFor(object, nil) // NewInformers has made it
	}
	found, _ := r.restores.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	informer, _ := found.(toolscache.SharedIndexInformer)
	return informer
}
