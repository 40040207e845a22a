package controllerruntime

import (
	"cmp"
	"context"
	"sync"
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
	told       clientgo.Occurrence
	now        chan struct{} // has one item if there is reason to ask at once
	replaced   bool

	mu      sync.Mutex
	notices []notice // of informers that notice it themselves, since the last check
}

// notice is that the list of a kind has shown that the server went back.
type notice struct {
	kind string
	err  error
}

// watchedKind is one of the kinds that the controller is told of.
type watchedKind struct {
	name   string
	object client.Object
	list   client.ObjectList
	tells  bool              // its informer does
	seen   clientgo.Position // by lists, and by the cache before they were requested
	shown  clientgo.Position // by the events of the cache
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

// Start asks from time to time how far the server is, until the context ends. The manager calls it.
func (s *restores) Start(ctx context.Context) error {
	period := cmp.Or(s.reconciler.Resync, defaultResync)
	if period < 0 {
		return nil
	}
	for _, kind := range s.kinds {
		found, _ := s.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if noticing, ok := found.(interface{ OnWentBack(func(error)) }); ok { // one of clientgo.NewInformer
			kind.tells = true
			noticing.OnWentBack(func(err error) { s.notice(kind.name, err) })
		}
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

// notice takes what an informer has noticed, which must not wait.
func (s *restores) notice(kind string, err error) {
	s.mu.Lock()
	s.notices = append(s.notices, notice{kind, err})
	s.mu.Unlock()
	s.askNow()
}

// check compares how far the server is with how far it was, of each kind whose informer does not notice it. If it went back all
// that is known is read anew; and if the cache of the manager does not list anew, informers of our own report from then on.
func (s *restores) check(ctx context.Context) {
	s.mu.Lock()
	notices := s.notices
	s.notices = nil
	s.mu.Unlock()
	for _, noticed := range notices {
		s.wentBack(noticed.kind, noticed.err)
	}
	blind, ahead := false, map[toolscache.SharedIndexInformer]string{}
	for _, kind := range s.kinds {
		if kind.tells || s.replaced {
			continue
		}
		var cached clientgo.Position
		informer, before := s.informer(ctx, kind)
		cached.Reached(before)
		kind.seen.Reached(before)
		list := kind.list.DeepCopyObject().(client.ObjectList)
		if err := s.live.List(ctx, list, client.Limit(1)); err != nil {
			s.log.Error(err, "cannot ask how far the server is")
			continue
		}
		if err := kind.seen.Check(list.GetResourceVersion()); err != nil {
			s.wentBack(kind.name, err)
			if informer == nil {
				blind = true
			} else if cached.Check(list.GetResourceVersion()) != nil {
				ahead[informer] = before
			}
		}
	}
	if (blind || clientgo.Blind(ctx, ahead)) && ctx.Err() == nil {
		s.replaced = true
		s.replace(ctx)
	}
}

// wentBack has all that is known read anew, once each time that the server went back in time. Kind is the one whose list has
// shown it.
func (s *restores) wentBack(kind string, err error) {
	if !s.told.Begins(kind) {
		return
	}
	keys := s.reconciler.controller.ObserveRestore()
	s.log.Error(err, "the server went back in time; nothing is destroyed until every claim and volume has been read anew", "kind", kind, "objects", len(keys))
	add(s.reconciler.queue, keys)
}

// informer returns the manager's informer of a kind and how far it is; nil where its cache has several, as that of some
// namespaces, and how far its events are.
func (s *restores) informer(ctx context.Context, kind *watchedKind) (toolscache.SharedIndexInformer, string) {
	found, err := s.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
	if informer, ok := found.(toolscache.SharedIndexInformer); ok && err == nil {
		return informer, informer.LastSyncResourceVersion()
	}
	return nil, kind.shown.Newest()
}

// replace reports by informers of our own, until the context ends, what happens in the namespaces of the manager's cache.
func (s *restores) replace(ctx context.Context) {
	s.log.Info("the cache of the manager sees nothing until the server has reached the resourceVersion that it had; pvbind watches by itself from now on. Make the manager with cache.Options{NewInformer: clientgo.NewInformer}, and its cache will list anew")
	r := s.reconciler
	factory := clientgo.NewInformers(s.clientset, r.Pods, r.Hooks, s.notice)
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
