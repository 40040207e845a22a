package clientgo

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding"
)

// handler tells the crew of what one informer sees.
func (c *crew) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    c.observe,
		UpdateFunc: c.update,
		DeleteFunc: c.observeDeleted,
	}
}

// update takes two versions of one object, or what a new list has under the name of another object that went
// unnoticed.
func (c *crew) update(old, new any) {
	before, known := old.(binding.Object)
	after, ok := new.(binding.Object)
	if known && ok && before.GetUID() != after.GetUID() {
		c.observeDeleted(before)
	}
	c.observe(new)
}

func (c *crew) observe(object any) {
	switch object := object.(type) {
	case *storagev1.StorageClass:
		c.add(c.controller.Recheck(object)...) // nobody else tells of classes and pods: what comes last is so (W7)
	case *corev1.Pod:
		c.add(c.controller.Recheck(object)...)
	case binding.Object:
		c.add(c.controller.Observe(object)...)
		c.metrics.binding.observe(object)
	}
}

// observeDeleted takes the last known state of an object, which may be out of date if the deletion was missed and only a
// new list told of it.
func (c *crew) observeDeleted(object any) {
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	if object, ok := object.(binding.Object); ok {
		c.add(c.controller.ObserveDeleted(object)...)
		c.metrics.binding.forget(object)
	}
}

// trim drops what no decision needs and no write carries, before an informer keeps it: managedFields of everything, and
// of a pod all but who it is, where it runs, which claims it uses and whether it is done.
func trim(object any) (any, error) {
	if object, ok := object.(binding.Object); ok {
		object.SetManagedFields(nil)
	}
	if pod, ok := object.(*corev1.Pod); ok {
		return trimPod(pod), nil
	}
	return object, nil
}
