package clientgo

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
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
	before, known := old.(obj.Object)
	after, ok := new.(obj.Object)
	if known && ok && before.GetUID() != after.GetUID() {
		c.observeDeleted(before)
	}
	c.observe(new)
}

func (c *crew) observe(object any) {
	switch object := object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		c.add(c.controller.Observe(object.(obj.Object))...)
		c.metrics.binding.observe(object.(obj.Object))
	case obj.Object:
		c.add(c.controller.Recheck(object)...) // nobody else tells of it: what comes last is so (W7)
	}
}

// observeDeleted takes the last known state of an object, which may be out of date if the deletion was missed and only a
// new list told of it.
func (c *crew) observeDeleted(object any) {
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	if object, ok := object.(obj.Object); ok {
		c.add(c.controller.ObserveDeleted(object)...)
		c.metrics.binding.forget(object)
	}
}

// trim drops what no decision needs and no write carries, before an informer keeps it: managedFields of everything, and
// of a pod all but who it is, where it runs, which claims it uses and whether it is done; of an attachment all but who it
// is, its volume and its node.
func trim(object any) (any, error) {
	if object, ok := object.(obj.Object); ok {
		object.SetManagedFields(nil)
	}
	switch object := object.(type) {
	case *corev1.Pod:
		return trimPod(object), nil
	case *storagev1.VolumeAttachment:
		return trimAttachment(object), nil
	}
	return object, nil
}

// trimAttachment keeps what says that a volume is attached. There may be tens of thousands of them.
func trimAttachment(attachment *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
	source := storagev1.VolumeAttachmentSource{PersistentVolumeName: attachment.Spec.Source.PersistentVolumeName}
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            attachment.Name,
			UID:             attachment.UID,
			ResourceVersion: attachment.ResourceVersion,
		},
		Spec: storagev1.VolumeAttachmentSpec{Source: source, NodeName: attachment.Spec.NodeName},
	}
}
