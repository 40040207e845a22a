package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

// Watch begins to watch all that planning depends on, and returns once the caches are filled. It watches until Stop is
// called; the context bounds the beginning only.
func Watch(ctx context.Context, clientset kubernetes.Interface) (*Cluster, error) {
	c := newCluster()
	factory := c.informers(clientset)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	c.lookups = lookups{
		volumeStore: core.PersistentVolumes().Informer().GetStore(),
		claimStore:  core.PersistentVolumeClaims().Informer().GetStore(),

		nodes:      core.Nodes().Lister(),
		pods:       core.Pods().Lister(),
		classes:    storage.StorageClasses().Lister(),
		drivers:    storage.CSIDrivers().Lister(),
		capacities: storage.CSIStorageCapacities().Informer().GetIndexer(),
	}
	if err := c.capacities.AddIndexers(cache.Indexers{byClass: classOfCapacity}); err != nil {
		return nil, err
	}
	handled, err := c.handle(core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(), core.Pods().Informer())
	if err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = func() {
		end()
		clientgo.Shutdown(factory)
	}
	factory.StartWithContext(watching)
	if err := filled(ctx, factory, handled); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// informers returns those of all kinds. They list anew when the server has gone back in time, as after a restore of etcd.
func (c *Cluster) informers(clientset kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithTransform(trim))
	core, storage, all := clientset.CoreV1(), clientset.StorageV1(), metav1.NamespaceAll
	ofNothing := func(string, error) {} // of what is known from informers alone there is nothing to forget
	factory.InformerFor(&corev1.PersistentVolume{}, clientgo.InformerOf(&corev1.PersistentVolume{}, core.PersistentVolumes(), c.serverWentBack))
	factory.InformerFor(&corev1.PersistentVolumeClaim{}, clientgo.InformerOf(&corev1.PersistentVolumeClaim{}, core.PersistentVolumeClaims(all), c.serverWentBack))
	factory.InformerFor(&corev1.Pod{}, clientgo.InformerOf(&corev1.Pod{}, core.Pods(all), ofNothing))
	factory.InformerFor(&corev1.Node{}, clientgo.InformerOf(&corev1.Node{}, core.Nodes(), ofNothing))
	factory.InformerFor(&storagev1.StorageClass{}, clientgo.InformerOf(&storagev1.StorageClass{}, storage.StorageClasses(), ofNothing))
	factory.InformerFor(&storagev1.CSIDriver{}, clientgo.InformerOf(&storagev1.CSIDriver{}, storage.CSIDrivers(), ofNothing))
	factory.InformerFor(&storagev1.CSIStorageCapacity{}, clientgo.InformerOf(&storagev1.CSIStorageCapacity{}, storage.CSIStorageCapacities(all), ofNothing))
	return factory
}

// filled waits until all caches are, and their objects were handled.
func filled(ctx context.Context, factory informers.SharedInformerFactory, handled []cache.DoneChecker) error {
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the list of %s did not come: %w", kind, ctx.Err())
		}
	}
	if !cache.WaitFor(ctx, "", handled...) {
		return ctx.Err()
	}
	return nil
}

// handle adds handlers to these informers.
func (c *Cluster) handle(all ...cache.SharedIndexInformer) (handled []cache.DoneChecker, err error) {
	for _, informer := range all {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.observe,
			UpdateFunc: c.replace,
			DeleteFunc: c.observeDeleted,
		})
		if err != nil {
			return nil, err
		}
		handled = append(handled, registration.HasSyncedChecker())
	}
	return handled, nil
}

// replace takes two versions of one object; or two objects of one name if the end of the first was missed; or, after a restore
// of the server, a version and an older one, which is the one that counts.
func (c *Cluster) replace(old, now any) {
	before, after := old.(obj.Object), now.(obj.Object)
	switch {
	case before.GetUID() != after.GetUID():
		c.forget(old)
		c.observe(now)
	case obj.Older(after, before):
		c.observeBack(now)
	default:
		c.observe(now)
	}
}

func (c *Cluster) observeDeleted(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	c.forget(object)
}

// trim drops what no decision needs before an informer keeps it.
func trim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
			Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: pod.Spec.Volumes},
		}, nil
	}
	if object, ok := object.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return object, nil
}
