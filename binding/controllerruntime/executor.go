package controllerruntime

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

// Executor plans the volumes of pods by what a manager's cache shows, and carries plans out: see package executor. It is for a
// scheduler, or for what places pods in place of one. Make one with NewExecutor.
type Executor struct {
	executor.Executor

	// Resync is how often the server is asked, by one small list of each kind, how far it is: a minute if zero, never if
	// negative. That is how it is noticed that etcd was restored from a backup. Set it before the manager is started.
	Resync time.Duration

	cache      client.Reader
	live       client.Reader
	capacities toolscache.Indexer
	restores   restores
	watched    []watchedBy
	own        atomic.Pointer[clientgo.Executor] // in place of the cache; nil: the cache is not blind
}

// watchedBy is a kind, and what reports it.
type watchedBy struct {
	*watchedKind
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

var (
	_ scheduling.View        = (*Executor)(nil)
	_ scheduling.CSINodeView = (*Executor)(nil)
)

// NewExecutor returns an Executor in a manager, before that is started: its cache then watches claims, volumes, pods, classes,
// CSIDrivers, CSIStorageCapacities and CSINodes. Plan once Synced.
func NewExecutor(ctx context.Context, mgr manager.Manager) (*Executor, error) {
	e := &Executor{
		cache:      mgr.GetCache(),
		live:       Client{Live: mgr.GetAPIReader()}.live(),
		capacities: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{byClass: classOfCapacity}),
	}
	e.PodGone, e.CSINodeOf = e.podGone, e.csiNode
	e.Client = askingClient{Client{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}, e}
	if err := e.watchRestores(mgr); err != nil {
		return nil, err
	}
	for _, kind := range e.restores.kinds {
		informer, err := mgr.GetCache().GetInformer(ctx, kind.object)
		if err != nil {
			return nil, err
		}
		e.restores.listen(kind, informer) // which may notice it before the restores are started
		registration, err := informer.AddEventHandler(kind.noting(e.handler(kind)))
		if err != nil {
			return nil, err
		}
		e.watched = append(e.watched, watchedBy{kind, informer, registration})
	}
	return e, nil
}

// handler returns what takes the events of the manager's cache.
func (e *Executor) handler(kind *watchedKind) toolscache.ResourceEventHandler {
	switch kind.object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *corev1.Pod:
		return e.asking(clientgo.ExecutorHandler(&e.Executor))
	case *storagev1.CSIStorageCapacity:
		return keepIn(e.capacities)
	}
	return toolscache.ResourceEventHandlerFuncs{}
}

// keepIn returns what keeps the objects of an informer in a store. A manager's cache returns copies, and plans compare capacities by
// their pointers.
func keepIn(store toolscache.Store) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { _ = store.Add(object) }, // it fails for what is no object
		UpdateFunc: func(_, now any) { _ = store.Update(now) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			_ = store.Delete(object)
		},
	}
}

// Synced waits until the cache has shown all that exists; false if the context ended before.
func (e *Executor) Synced(ctx context.Context) bool {
	synced := make([]toolscache.DoneChecker, len(e.watched))
	for i := range e.watched {
		synced[i] = e.watched[i].registration.HasSyncedChecker()
	}
	return toolscache.WaitFor(ctx, "", synced...)
}

// Request returns a request for a plan of the pod.
func (e *Executor) Request(pod *corev1.Pod) scheduling.Request { return e.Executor.Request(pod, e) }

// BindVolumes gets the pod its volumes on the node that was chosen: what was assumed for it or, if that is nil, what is planned
// now. Every error is an *executor.Error; the Executor that is embedded says more.
func (e *Executor) BindVolumes(ctx context.Context, pod *corev1.Pod, node *corev1.Node, assumed *scheduling.Assumption) error {
	return e.Executor.BindVolumes(ctx, e.Request(pod), node, assumed)
}

// Class looks up a class. A cache fails only by not finding.
func (e *Executor) Class(name string) *storagev1.StorageClass {
	if own := e.own.Load(); own != nil {
		return own.Class(name)
	}
	return lookUp(e.cache, name, &storagev1.StorageClass{})
}

// CSIDriver looks up a driver.
func (e *Executor) CSIDriver(name string) *storagev1.CSIDriver {
	if own := e.own.Load(); own != nil {
		return own.CSIDriver(name)
	}
	return lookUp(e.cache, name, &storagev1.CSIDriver{})
}

func (e *Executor) csiNode(name string) *storagev1.CSINode {
	if own := e.own.Load(); own != nil {
		return own.CSINode(name)
	}
	return lookUp(e.cache, name, &storagev1.CSINode{})
}

func lookUp[T client.Object](in client.Reader, name string, object T) T {
	if err := in.Get(context.Background(), client.ObjectKey{Name: name}, object); err != nil {
		var none T
		return none
	}
	return object
}

// byClass is the index of capacities.
const byClass = "storageClassName"

func classOfCapacity(object any) ([]string, error) {
	return []string{object.(*storagev1.CSIStorageCapacity).StorageClassName}, nil
}

// CSIStorageCapacities returns those of the class.
func (e *Executor) CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity {
	if own := e.own.Load(); own != nil {
		return own.CSIStorageCapacities(class)
	}
	found, _ := e.capacities.ByIndex(byClass, class)
	capacities := make([]*storagev1.CSIStorageCapacity, len(found))
	for i := range found {
		capacities[i] = found[i].(*storagev1.CSIStorageCapacity)
	}
	return capacities
}

// podGone reports whether the pod does not exist any more. One that is not in the cache may be newer than that, so it is read live.
func (e *Executor) podGone(ctx context.Context, key obj.Key, uid types.UID) bool {
	if own := e.own.Load(); own != nil {
		return own.PodGone(ctx, key, uid)
	}
	pod, name := &corev1.Pod{}, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	err := e.cache.Get(ctx, name, pod)
	if err != nil || pod.UID != uid {
		err = Client{Live: e.live}.live().Get(ctx, name, pod)
	}
	return obj.IsAbsent(err, key) || err == nil && pod.UID != "" && pod.UID != uid
}
