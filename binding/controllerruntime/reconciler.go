package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

var _ reconcile.TypedReconciler[obj.Key] = (*Reconciler)(nil)

// Reconciler runs a binding.Controller in a manager: see SetupWithManager. The zero value is ready to use. No field may
// change once it is set up.
type Reconciler struct {
	// Client reads and writes, and must have no cache; nil: the manager's client, with live reads from the server.
	Client client.Client
	// BindingOptions and Hooks are those of the binding.Controller.
	BindingOptions decision.Options
	Hooks          hooks.Set
	// Pods is clientgo.PodsWatched unless set.
	Pods clientgo.PodWatch
	// Recorder publishes events; nil: clientgo.StartRecorder on the manager's connection. Warnings are in the manager's log as
	// well, each once: see clientgo.WarningLog.
	Recorder binding.Recorder
	// Resync is how often the server is asked, by one small list of each kind, how far it is: a minute if zero, never if
	// negative. That is how it is noticed that etcd was restored from a backup. It also finds objects that are gone, and that only
	// replies of the server, or informers that saw nothing after a restore, have shown; and objects that exist again, or in an older
	// version, after a restore that left the revisions as they were, or later.
	Resync time.Duration
	// Options are those of controller-runtime's controller. MaxConcurrentReconciles is 64 if zero; half of them are for one
	// namespace at most, and the namespaces that wait are served in turn. The rate limiter is always the Reconciler's own, which
	// delays a retry for as long as the binding.Controller says. The queue has no priorities unless UsePriorityQueue is set.
	Options controller.TypedOptions[obj.Key]

	controller *binding.Controller
	warnings   clientgo.WarningLog
	restores   restores
	lists      clientgo.Lists
	own        informers.SharedInformerFactory // in place of the manager's cache; nil: that is not blind
	blind      atomic.Bool                     // what the manager's cache shows, and shows again, counts no more
	queue      workqueue.TypedRateLimitingInterface[obj.Key]
	begun      atomic.Bool // the caches have told all that they have, and the queue is there
	delays     delays
}

const defaultConcurrency = 64

// SetupWithManager adds the Reconciler to a manager, which starts it.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	if err := r.Pods.Check(r.BindingOptions, r.Hooks); err != nil {
		return fmt.Errorf("controllerruntime.Reconciler: %w", err)
	}
	recorder := r.Recorder
	if recorder == nil {
		var err error
		if recorder, err = startRecorder(mgr); err != nil {
			return err
		}
	}
	own := Client{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	if r.Client != nil {
		own = Client{Client: r.Client}
	}
	r.warnings.Recorder, r.warnings.Log = recorder, func(event decision.Event) { logWarning(mgr.GetLogger(), event) }
	r.controller = r.newController(own, &r.warnings)
	if err := r.watchRestores(mgr); err != nil {
		return err
	}
	return r.watch(mgr)
}

func (r *Reconciler) newController(client Client, recorder binding.Recorder) *binding.Controller {
	client.lists = &r.lists
	return &binding.Controller{Client: client, Recorder: recorder, Options: r.BindingOptions, Hooks: r.Hooks, Workers: r.concurrency()}
}

func (r *Reconciler) concurrency() int {
	return cmp.Or(r.Options.MaxConcurrentReconciles, defaultConcurrency)
}

// logWarning logs at the level info, which is seen by default; an error would come with a stack trace that shows nothing.
func logWarning(log logr.Logger, event decision.Event) {
	of := []any{"key", event.On.String()}
	if event.Hook != "" {
		of = append(of, "hook", event.Hook)
	}
	log.WithName("pvbind").Info(string(event.Reason), append(of, "error", event.Message)...)
}

// startRecorder publishes events until the manager stops.
func startRecorder(mgr manager.Manager) (binding.Recorder, error) {
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	recording, stop := context.WithCancel(context.Background())
	return clientgo.StartRecorder(recording, clientset), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		return nil
	}))
}

// Reconcile syncs one claim or volume. The manager calls it.
func (r *Reconciler) Reconcile(ctx context.Context, key obj.Key) (reconcile.Result, error) {
	r.begun.Store(true)
	result, err := r.controller.Sync(ctx, key)
	add(r.queue, result.Next)
	if errors.Is(err, binding.ErrServerWentBack) {
		r.restores.told.Begins("")
		r.restores.askNow()
	}
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: result.After}, nil
	case result.After == 0:
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	r.delays.set(key, result.After)
	return reconcile.Result{}, err
}

func add(queue workqueue.TypedRateLimitingInterface[obj.Key], keys []obj.Key) {
	for _, key := range keys {
		queue.Add(key)
	}
}

type queue = workqueue.TypedRateLimitingInterface[obj.Key]

// watch has the manager report changes to the controller, and sync the keys that follow from them.
func (r *Reconciler) watch(mgr manager.Manager) error {
	options := r.Options
	options.MaxConcurrentReconciles = r.concurrency() + 1 // one to see who comes while all are busy (W9)
	options.RateLimiter = &r.delays
	if options.UsePriorityQueue == nil { // that of controller-runtime 0.24 may never end if a key is added while the manager stops
		options.UsePriorityQueue = new(bool)
	}
	build := builder.TypedControllerManagedBy[obj.Key](mgr).
		Named("pvbind").
		WithOptions(options).
		WatchesRawSource(source.TypedFunc[obj.Key](func(_ context.Context, queue queue) error {
			r.queue = queue
			return nil
		}))
	for _, kind := range r.restores.kinds {
		build = build.Watches(kind.object, r.handler(kind), builder.WithPredicates(predicate.NewPredicateFuncs(func(client.Object) bool { return !r.blind.Load() })))
	}
	return build.Complete(r)
}

// handler returns what reports the events of the manager's cache to the controller.
func (r *Reconciler) handler(kind *watchedKind) handler.TypedEventHandler[client.Object, obj.Key] {
	return handler.TypedFuncs[client.Object, obj.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], queue queue) {
			kind.shown.Reached(e.Object.GetResourceVersion())
			add(queue, r.observe(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], queue queue) {
			kind.showsUpdate(e.ObjectOld, e.ObjectNew)
			add(queue, r.update(e.ObjectOld, e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], queue queue) {
			add(queue, r.observeDeleted(e.Object))
		},
	}
}

// observe takes an object from a cache. Of what is never read live a cache is the only source: its version is the newest (W7).
func (r *Reconciler) observe(object client.Object) []obj.Key {
	switch object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		return r.controller.Observe(object)
	}
	return r.controller.Recheck(object)
}

// update takes two versions of one object; the same version twice, if the cache resyncs; an object and its successor of the same
// name, if the end of the first was missed and only a new list shows the second; or a version and an older one, if the server
// went back in time and the cache has listed anew.
func (r *Reconciler) update(old, new client.Object) []obj.Key {
	var keys []obj.Key
	switch {
	case old.GetUID() != new.GetUID():
		keys = r.controller.ObserveDeleted(old)
	case old.GetResourceVersion() == new.GetResourceVersion():
		return r.controller.Recheck(new)
	case obj.Older(new, old):
		r.restores.askNow()
	}
	return append(keys, r.observe(new)...)
}

func (r *Reconciler) observeDeleted(object any) []obj.Key {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if key, ok := keyOf(object); ok {
		r.warnings.Forget(key)
	}
	return r.controller.ObserveDeleted(object.(client.Object))
}

// keyOf returns the key of a claim or a volume.
func keyOf(object any) (key obj.Key, ok bool) {
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return obj.KeyOf(object), true
	case *corev1.PersistentVolume:
		return obj.VolumeKey(object.Name), true
	}
	return obj.Key{}, false
}

var _ workqueue.TypedRateLimiter[obj.Key] = (*delays)(nil)

// delays is a rate limiter that returns the delays of the binding.Controller, which counts failures itself (W6).
type delays struct {
	mu sync.Mutex
	by map[obj.Key]time.Duration
}

func (d *delays) set(key obj.Key, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[obj.Key]time.Duration{}
	}
	d.by[key] = after
}

// When returns how long to wait before the key is synced again.
func (d *delays) When(key obj.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[key]
}

// Forget removes the delay of a key whose sync has succeeded.
func (d *delays) Forget(key obj.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, key)
}

// NumRequeues returns 0: nobody calls it.
func (d *delays) NumRequeues(obj.Key) int { return 0 }
