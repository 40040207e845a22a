package controllerruntime

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
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
	subject
	period    time.Duration // how often the server is asked how far it is: a minute if zero, never if negative
	live      client.Reader
	cache     cache.Cache
	clientset kubernetes.Interface
	log       logr.Logger
	kinds     []*watchedKind
	told      clientgo.Occurrence
	now       chan struct{} // has one item if there is reason to ask at once
	replaced  bool

	mu      sync.Mutex
	notices []notice // of informers that notice it themselves, since the last check
}

// subject is whoever remembers objects of a server that went back in time.
type subject interface {
	// serverWentBack is called once each time, and tells of it. Kind is the one whose list has shown it.
	serverWentBack(kind string, err error)
	// serverWentBackAgain does the same where it was told already.
	serverWentBackAgain()
	// replace watches with informers of its own, until the context ends: those of the manager's cache see nothing.
	replace(context.Context)
	// recheck has read, or forgets, what no cache has, and has read what the cache has otherwise than it is known: no cache will tell of it.
	recheck(context.Context)
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

// noting returns a handler that notes how far the cache is as well.
func (k *watchedKind) noting(to toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			k.shown.Reached(object.(client.Object).GetResourceVersion())
			to.OnAdd(object, initial)
		},
		UpdateFunc: func(before, now any) {
			k.showsUpdate(before.(client.Object), now.(client.Object))
			to.OnUpdate(before, now)
		},
		DeleteFunc: to.OnDelete,
	}
}

// showsUpdate notes how far the cache is by two versions of an object, which are the same if it resyncs.
func (k *watchedKind) showsUpdate(before, now client.Object) {
	if before.GetResourceVersion() != now.GetResourceVersion() {
		k.shown.Reached(now.GetResourceVersion())
	}
}

// setUp takes what the server is asked with from a manager.
func (s *restores) setUp(mgr manager.Manager) (err error) {
	s.cache, s.log = mgr.GetCache(), mgr.GetLogger().WithName("pvbind")
	s.live, s.now = Client{Live: mgr.GetAPIReader()}.live(), make(chan struct{}, 1)
	s.clientset, err = kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	return err
}

// Start asks from time to time how far the server is, until the context ends. The manager calls it.
func (s *restores) Start(ctx context.Context) error {
	period := cmp.Or(s.period, defaultResync)
	if period < 0 {
		return nil
	}
	for _, kind := range s.kinds {
		found, _ := s.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		s.listen(kind, found)
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
		s.recheck(ctx)
	}
}

// listen has an informer of clientgo.NewInformer tell what it notices. Others do not.
func (s *restores) listen(kind *watchedKind, to cache.Informer) {
	noticing, ok := to.(interface{ OnWentBack(func(error)) })
	if ok && !kind.tells {
		kind.tells = true
		noticing.OnWentBack(func(err error) { s.notice(kind.name, err) })
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

// wentBack tells the subject that the list of a kind has shown that the server went back in time.
func (s *restores) wentBack(kind string, err error) {
	if s.told.Begins(kind) {
		s.serverWentBack(kind, err)
	} else {
		s.serverWentBackAgain()
	}
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

// cached reports whether the informer, or where it is nil the manager's cache, has an object by its UID. What is in none of the
// namespaces of that counts as what it has.
func (s *restores) cached(ctx context.Context, in toolscache.SharedIndexInformer, object client.Object) bool {
	if in != nil {
		found, exists, _ := in.GetStore().Get(object) // it fails for what is no object
		return exists && found.(client.Object).GetUID() == object.GetUID()
	}
	found := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	err := s.cache.Get(ctx, client.ObjectKeyFromObject(object), found, client.UnsafeDisableDeepCopy) // there may be very many pods
	return err == nil && found.GetUID() == object.GetUID() || err != nil && !apierrors.IsNotFound(err)
}

// objects returns what the informer, or where it is nil the manager's cache, has of a kind. None of it may be modified.
func (s *restores) objects(ctx context.Context, in toolscache.SharedIndexInformer, list client.ObjectList) (objects []client.Object) {
	if in != nil {
		for _, object := range in.GetStore().List() {
			objects = append(objects, object.(client.Object))
		}
		return objects
	}
	if err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Error(err, "cannot list what the cache has")
		return nil
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // no error, for it is a list
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects
}

// blindCache is logged where a subject replaces the informers of the manager's cache.
const blindCache = "the cache of the manager sees nothing until the server has reached the resourceVersion that it had; pvbind watches by itself from now on. Make the manager with cache.Options{NewInformer: clientgo.NewInformer}, and its cache will list anew"

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
