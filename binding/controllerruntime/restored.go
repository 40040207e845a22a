package controllerruntime

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pvbind/pvbind/binding/clientgo"
)

const defaultResync = time.Minute

// restores notices when the server went back in time, as after a restore of etcd from a backup. The informers of a manager's
// cache do not, unless they are those of clientgo.NewInformer: they see nothing for as long as the server is behind.
type restores struct {
	reconciler *Reconciler
	live       client.Reader
	cache      cache.Cache
	clientset  kubernetes.Interface
	log        logr.Logger
	kinds      []*watchedKind
	byRead     atomic.Bool   // a sync has noticed it by a live read, and no list since
	now        chan struct{} // has one item if there is reason to ask at once
	replaced   bool
}

// watchedKind is one of the kinds that the controller is told of.
type watchedKind struct {
	object client.Object
	list   client.ObjectList
	seen   clientgo.Position
	failed bool // the last attempt to ask about it
	told   bool // it could not be asked about when it was told that the server went back
}

// setUp has the restores of a Reconciler noticed in a manager.
func (s *restores) setUp(mgr manager.Manager, r *Reconciler) (err error) {
	if s.clientset, err = kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return err
	}
	s.reconciler, s.cache, s.log = r, mgr.GetCache(), mgr.GetLogger().WithName("pvbind")
	s.live, s.now = mgr.GetAPIReader(), make(chan struct{}, 1)
	if r.Client != nil {
		s.live = r.Client
	}
	s.kinds = []*watchedKind{
		{object: &storagev1.StorageClass{}, list: &storagev1.StorageClassList{}},
		{object: &corev1.PersistentVolume{}, list: &corev1.PersistentVolumeList{}},
		{object: &corev1.PersistentVolumeClaim{}, list: &corev1.PersistentVolumeClaimList{}},
	}
	if r.Pods == clientgo.PodsWatched {
		s.kinds = append(s.kinds, &watchedKind{object: &corev1.Pod{}, list: &corev1.PodList{}})
	}
	if r.Hooks.Reclaims() {
		s.kinds = append(s.kinds, &watchedKind{object: &storagev1.VolumeAttachment{}, list: &storagev1.VolumeAttachmentList{}})
	}
	return mgr.Add(s)
}

// Start asks from time to time how far the server is, until the context ends. The manager calls it.
func (s *restores) Start(ctx context.Context) error {
	period := cmp.Or(s.reconciler.Resync, defaultResync)
	if period < 0 {
		return nil
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-s.now:
		}
		s.check(ctx)
	}
}

// askNow has the server asked at once. Before it is set up nobody is.
func (s *restores) askNow() {
	select {
	case s.now <- struct{}{}:
	default: // it will be
	}
}

// check compares how far the server is with how far it was. If it went back all that is known is read anew; and if the cache of
// the manager does not list anew, informers of our own report from then on.
func (s *restores) check(ctx context.Context) {
	blind, wentBack := s.ask(ctx)
	noticed := s.byRead.Swap(false)
	if wentBack == nil {
		return
	}
	if !noticed {
		keys := s.reconciler.controller.ObserveRestore()
		s.log.Error(wentBack, "the server went back in time; nothing is destroyed until every claim and volume has been read anew", "objects", len(keys))
		add(s.reconciler.queue, keys)
	}
	// A kind that was asked about before the server went back would notice the same once more.
	late, _ := s.ask(ctx)
	for _, kind := range s.kinds {
		kind.told = kind.failed
	}
	if !s.replaced && (blind(ctx) || late(ctx)) && ctx.Err() == nil {
		s.replaced = true
		s.replace(ctx)
	}
}

// ask asks how far the server is, kind by kind. It returns an error that says so if the server went back, and what reports
// then whether the cache of the manager sees nothing because of it.
func (s *restores) ask(ctx context.Context) (blind func(context.Context) bool, wentBack error) {
	unknown, ahead := false, map[toolscache.SharedIndexInformer]string{}
	for _, kind := range s.kinds {
		var informed clientgo.Position
		informer, before := s.informer(ctx, kind)
		if informer != nil && !s.replaced { // else it is far ahead for long
			informed.Reached(before)
			kind.seen.Reached(before)
		}
		list := kind.list.DeepCopyObject().(client.ObjectList)
		if err := s.live.List(ctx, list, client.Limit(1)); err != nil {
			s.log.Error(err, "cannot ask how far the server is")
			kind.failed = true
			continue
		}
		told := kind.told
		kind.failed, kind.told = false, false
		if err := kind.seen.Check(list.GetResourceVersion()); err != nil && !told {
			wentBack, unknown = err, unknown || informer == nil
		}
		if informed.Check(list.GetResourceVersion()) != nil {
			ahead[informer] = before
		}
	}
	return func(ctx context.Context) bool { return unknown || clientgo.Blind(ctx, ahead) }, wentBack
}

// informer returns the manager's informer of a kind and how far it is; nil where its cache has several, as that of some namespaces.
func (s *restores) informer(ctx context.Context, kind *watchedKind) (toolscache.SharedIndexInformer, string) {
	found, err := s.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, ""
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, ""
	}
	return informer, informer.LastSyncResourceVersion()
}

// replace reports by informers of our own, until the context ends, what happens in the namespaces of the manager's cache.
func (s *restores) replace(ctx context.Context) {
	s.log.Info("the cache of the manager sees nothing until the server has reached the resourceVersion that it had; pvbind watches by itself from now on. Make the manager with cache.Options{NewInformer: clientgo.NewInformer}, and its cache will list anew")
	r := s.reconciler
	factory := clientgo.NewInformers(s.clientset, r.Pods, r.Hooks, func(string, error) {}) // the next check tells of it
	core, storage := factory.Core().V1(), factory.Storage().V1()
	informers := []toolscache.SharedIndexInformer{storage.StorageClasses().Informer(), core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer()}
	if r.Pods == clientgo.PodsWatched {
		informers = append(informers, core.Pods().Informer())
	}
	if r.Hooks.Reclaims() {
		informers = append(informers, storage.VolumeAttachments().Informer())
	}
	for _, informer := range informers {
		_, _ = informer.AddEventHandler(toolscache.FilteringResourceEventHandler{ // informers that have not begun take it
			FilterFunc: func(object any) bool { return s.covers(ctx, object) },
			Handler: toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(object any) { add(r.queue, r.observe(object.(client.Object))) },
				UpdateFunc: func(old, new any) { add(r.queue, r.update(old.(client.Object), new.(client.Object))) },
				DeleteFunc: func(object any) { add(r.queue, r.observeDeleted(object)) },
			},
		})
	}
	factory.StartWithContext(ctx)
}

// covers reports whether the manager's cache has the namespace of an object.
func (s *restores) covers(ctx context.Context, object any) bool {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	found, ok := object.(client.Object)
	if !ok || found.GetNamespace() == "" {
		return ok
	}
	err := s.cache.Get(ctx, client.ObjectKeyFromObject(found), found.DeepCopyObject().(client.Object))
	return err == nil || apierrors.IsNotFound(err)
}
