package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/clientgo"
)

// Watch begins to watch all that planning depends on, and returns once the caches are filled. It watches until Stop is
// called; the context bounds the beginning only.
func Watch(ctx context.Context, clientset kubernetes.Interface) (*Cluster, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithTransform(trim))
	core, storage := factory.Core().V1(), factory.Storage().V1()
	c := newCluster()
	c.lookups = lookups{
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

// replace takes two versions of one object, or two objects of one name if the end of the first was missed.
func (c *Cluster) replace(old, now any) {
	before, after := old.(metav1.Object), now.(metav1.Object)
	if before.GetUID() != after.GetUID() {
		c.forget(old)
	}
	c.observe(now)
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
