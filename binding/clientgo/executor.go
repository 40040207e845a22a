package clientgo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

// Executor plans the volumes of pods by what informers show, and carries plans out: see package executor. It is for a scheduler.
// Make one with NewExecutor.
type Executor struct {
	executor.Executor

	clientset  kubernetes.Interface
	pods       corelisters.PodLister
	classes    storagelisters.StorageClassLister
	drivers    storagelisters.CSIDriverLister
	nodes      storagelisters.CSINodeLister
	capacities cache.Indexer
	stores     stores
	synced     []cache.DoneChecker
}

var (
	_ scheduling.View        = (*Executor)(nil)
	_ scheduling.CSINodeView = (*Executor)(nil)
)

// NewExecutor returns an Executor on informers: those of kube-scheduler, or of NewSchedulingInformers. Start them after that, and
// plan once Synced. It writes by way of the clientset. Informers of others do not notice that etcd was restored from a backup: a
// scheduler on those calls ServerWentBack if it does, or is started again.
func NewExecutor(clientset kubernetes.Interface, informers informers.SharedInformerFactory) (*Executor, error) {
	core, storage := informers.Core().V1(), informers.Storage().V1()
	e := &Executor{
		clientset:  clientset,
		pods:       core.Pods().Lister(),
		classes:    storage.StorageClasses().Lister(),
		drivers:    storage.CSIDrivers().Lister(),
		nodes:      storage.CSINodes().Lister(),
		capacities: storage.CSIStorageCapacities().Informer().GetIndexer(),
		stores:     stores{volumes: core.PersistentVolumes().Informer().GetStore(), claims: core.PersistentVolumeClaims().Lister()},
	}
	e.Client, e.PodGone, e.CSINodeOf = &Client{Clientset: clientset}, e.podGone, e.csiNode
	if _, indexed := e.capacities.GetIndexers()[byClass]; !indexed {
		if err := e.capacities.AddIndexers(cache.Indexers{byClass: classOfCapacity}); err != nil {
			return nil, err
		}
	}
	for _, informer := range []cache.SharedIndexInformer{
		storage.StorageClasses().Informer(), storage.CSIDrivers().Informer(), storage.CSIStorageCapacities().Informer(), storage.CSINodes().Informer(),
	} {
		e.synced = append(e.synced, informer.HasSyncedChecker())
	}
	report := ExecutorHandler(&e.Executor)
	for _, watched := range []struct {
		cache.SharedIndexInformer
		handler cache.ResourceEventHandler
	}{
		{core.PersistentVolumes().Informer(), e.stores.noting(report)},
		{core.PersistentVolumeClaims().Informer(), report},
		{core.Pods().Informer(), report},
	} {
		registration, err := watched.AddEventHandler(watched.handler)
		if err != nil {
			return nil, err
		}
		e.synced = append(e.synced, registration.HasSyncedChecker())
	}
	return e, nil
}

// ExecutorHandler returns what reports the changes of an informer of claims, volumes or pods to an Executor.
func ExecutorHandler(to *executor.Executor) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { to.Observe(object.(obj.Object)) },
		UpdateFunc: func(before, now any) { to.Update(before.(obj.Object), now.(obj.Object)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			to.ObserveDeleted(object.(obj.Object))
		},
	}
}

// Synced waits until the informers have shown all that exists; false if the context ended before.
func (e *Executor) Synced(ctx context.Context) bool { return cache.WaitFor(ctx, "", e.synced...) }

// Request returns a request for a plan of the pod. It knows at least what the informers had stored when it was called, whichever of
// their handlers have been told. So a scheduler that was told of a change may plan at once, and whoever is told of one
// after the plan knows that the plan may not know it.
func (e *Executor) Request(pod *corev1.Pod) scheduling.Request {
	e.stores.catchUp(&e.Executor, pod)
	return e.Executor.Request(pod, e)
}

// BindVolumes gets the pod its volumes on the node that was chosen: what was assumed for it or, if that is nil, what is planned
// now. Every error is an *executor.Error; the Executor that is embedded says more.
func (e *Executor) BindVolumes(ctx context.Context, pod *corev1.Pod, node *corev1.Node, assumed *scheduling.Assumption) error {
	return e.Executor.BindVolumes(ctx, e.Request(pod), node, assumed)
}

// Class looks up a class. A lister fails only by not finding.
func (e *Executor) Class(name string) *storagev1.StorageClass {
	class, _ := e.classes.Get(name)
	return class
}

// CSIDriver looks up a driver.
func (e *Executor) CSIDriver(name string) *storagev1.CSIDriver {
	driver, _ := e.drivers.Get(name)
	return driver
}

func (e *Executor) csiNode(name string) *storagev1.CSINode {
	node, _ := e.nodes.Get(name)
	return node
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

// byClass is the index of capacities. Informers may be shared with others, who have names of their own.
const byClass = "pvbind.github.io/storageClassName"

func classOfCapacity(object any) ([]string, error) {
	return []string{object.(*storagev1.CSIStorageCapacity).StorageClassName}, nil
}

// podGone reports whether the pod does not exist any more. One that is not in the cache may be newer than that, so it is read live.
func (e *Executor) podGone(ctx context.Context, key obj.Key, uid types.UID) bool {
	pod, err := e.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil || pod.UID != uid {
		ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
		pod, err = e.clientset.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
	return obj.IsAbsent(err, key) || err == nil && pod.UID != "" && pod.UID != uid
}
