package controllerruntime

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
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

	cache      client.Reader
	live       client.Reader
	capacities toolscache.Indexer
	synced     []toolscache.DoneChecker
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
		live:       mgr.GetAPIReader(),
		capacities: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{byClass: classOfCapacity}),
	}
	e.Client, e.PodGone, e.CSINodeOf = Client{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}, e.podGone, e.csiNode
	report := clientgo.ExecutorHandler(&e.Executor)
	for _, watched := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&corev1.PersistentVolume{}, report},
		{&corev1.PersistentVolumeClaim{}, report},
		{&corev1.Pod{}, report},
		{&storagev1.StorageClass{}, toolscache.ResourceEventHandlerFuncs{}},
		{&storagev1.CSINode{}, toolscache.ResourceEventHandlerFuncs{}},
		{&storagev1.CSIDriver{}, toolscache.ResourceEventHandlerFuncs{}},
		{&storagev1.CSIStorageCapacity{}, keepIn(e.capacities)},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, watched.kind)
		if err != nil {
			return nil, err
		}
		registration, err := informer.AddEventHandler(watched.handler)
		if err != nil {
			return nil, err
		}
		e.synced = append(e.synced, registration.HasSyncedChecker())
	}
	return e, nil
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
func (e *Executor) Synced(ctx context.Context) bool { return toolscache.WaitFor(ctx, "", e.synced...) }

// Request returns a request for a plan of the pod.
func (e *Executor) Request(pod *corev1.Pod) scheduling.Request { return e.Executor.Request(pod, e) }

// BindVolumes gets the pod its volumes on the node that was chosen: what was assumed for it or, if that is nil, what is planned
// now. Every error is an *executor.Error; the Executor that is embedded says more.
func (e *Executor) BindVolumes(ctx context.Context, pod *corev1.Pod, node *corev1.Node, assumed *scheduling.Assumption) error {
	return e.Executor.BindVolumes(ctx, e.Request(pod), node, assumed)
}

// Class looks up a class. A cache fails only by not finding.
func (e *Executor) Class(name string) *storagev1.StorageClass {
	return lookUp(e.cache, name, &storagev1.StorageClass{})
}

// CSIDriver looks up a driver.
func (e *Executor) CSIDriver(name string) *storagev1.CSIDriver {
	return lookUp(e.cache, name, &storagev1.CSIDriver{})
}

func (e *Executor) csiNode(name string) *storagev1.CSINode {
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
	found, _ := e.capacities.ByIndex(byClass, class)
	capacities := make([]*storagev1.CSIStorageCapacity, len(found))
	for i := range found {
		capacities[i] = found[i].(*storagev1.CSIStorageCapacity)
	}
	return capacities
}

// podGone reports whether the pod does not exist any more. One that is not in the cache may be newer than that, so it is read live.
func (e *Executor) podGone(ctx context.Context, key obj.Key, uid types.UID) bool {
	pod, name := &corev1.Pod{}, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	err := e.cache.Get(ctx, name, pod)
	if err != nil || pod.UID != uid {
		err = e.live.Get(ctx, name, pod)
	}
	return obj.IsAbsent(err, key) || err == nil && pod.UID != "" && pod.UID != uid
}
