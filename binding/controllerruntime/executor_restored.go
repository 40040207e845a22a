package controllerruntime

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

var _ subject = (*Executor)(nil)

// watchRestores has it noticed, in a manager, when the server went back in time.
func (e *Executor) watchRestores(mgr manager.Manager) error {
	s := &e.restores
	if err := s.setUp(mgr); err != nil {
		return err
	}
	s.subject = e
	s.kinds = []*watchedKind{
		{name: "PersistentVolume", object: &corev1.PersistentVolume{}, list: &corev1.PersistentVolumeList{}},
		{name: "PersistentVolumeClaim", object: &corev1.PersistentVolumeClaim{}, list: &corev1.PersistentVolumeClaimList{}},
		{name: "Pod", object: &corev1.Pod{}, list: &corev1.PodList{}},
		{name: "StorageClass", object: &storagev1.StorageClass{}, list: &storagev1.StorageClassList{}},
		{name: "CSINode", object: &storagev1.CSINode{}, list: &storagev1.CSINodeList{}},
		{name: "CSIDriver", object: &storagev1.CSIDriver{}, list: &storagev1.CSIDriverList{}},
		{name: "CSIStorageCapacity", object: &storagev1.CSIStorageCapacity{}, list: &storagev1.CSIStorageCapacityList{}},
	}
	return mgr.Add(executorRestores{e})
}

// executorRestores notices restores for an Executor, whoever leads: it plans by the cache in any case.
type executorRestores struct{ *Executor }

func (r executorRestores) Start(ctx context.Context) error {
	r.restores.period = r.Resync
	return r.restores.Start(ctx)
}

func (r executorRestores) NeedLeaderElection() bool { return false }

// asking has the server asked how far it is where the cache shows an older version of an object than before.
func (e *Executor) asking(to toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: to.OnAdd,
		UpdateFunc: func(before, now any) {
			to.OnUpdate(before, now)
			if obj.Older(now.(obj.Object), before.(obj.Object)) {
				e.restores.askNow()
			}
		},
		DeleteFunc: to.OnDelete,
	}
}

// askingClient is a Client that does so where a live read shows an older version than is known.
type askingClient struct {
	Client
	executor *Executor
}

func (c askingClient) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	known, _ := c.executor.Volume(name)
	found, err := c.Client.GetVolume(ctx, name)
	if err == nil && known != nil && obj.Older(found, known) {
		c.executor.restores.askNow()
	}
	return found, err
}

func (c askingClient) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	known, _ := c.executor.Claim(namespace, name)
	found, err := c.Client.GetClaim(ctx, namespace, name)
	if err == nil && known != nil && obj.Older(found, known) {
		c.executor.restores.askNow()
	}
	return found, err
}

// serverWentBack forgets what only replies have shown.
func (e *Executor) serverWentBack(kind string, err error) {
	e.restores.log.Error(err, "the server went back in time; what is planned for pods is planned anew", "kind", kind)
	e.serverWentBackAgain()
}

func (e *Executor) serverWentBackAgain() { e.ServerWentBack() }

// recheck does nothing: no reply brings back what was deleted.
func (e *Executor) recheck(context.Context) {}

// replace plans by informers of our own, until the context ends. Nothing of the cache counts any more: neither what it has, nor
// what it reports once the server has reached the resourceVersion that it had.
func (e *Executor) replace(ctx context.Context) {
	e.restores.log.Info(blindCache)
	factory := clientgo.NewExecutorInformers(e.restores.clientset, e.restores.notice)
	own, err := clientgo.NewExecutor(e.restores.clientset, factory)
	if err != nil {
		e.restores.log.Error(err, "cannot watch")
		return
	}
	factory.StartWithContext(ctx)
	if !own.Synced(ctx) {
		return
	}
	for _, watched := range e.watched {
		_ = watched.informer.RemoveEventHandler(watched.registration) // it fails for handlers of another informer only
	}
	e.own.Store(own)
	core := factory.Core().V1()
	kept := []toolscache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer()}
	has := map[obj.Object]toolscache.Store{}
	for _, informer := range kept {
		for _, object := range informer.GetStore().List() {
			has[object.(obj.Object)] = informer.GetStore()
		}
	}
	e.Reset(slices.Collect(maps.Keys(has)))
	for _, informer := range append(kept, core.Pods().Informer()) {
		_, _ = informer.AddEventHandler(clientgo.ExecutorHandler(&e.Executor)) // one that has not stopped takes it
	}
	for object, in := range has {
		if now, exists, _ := in.Get(object); !exists || now.(obj.Object).GetUID() != object.GetUID() { // it went before anybody was told
			e.ObserveDeleted(object)
		}
	}
}
