package clientgo

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// NewInformers returns informers of all that a binding.Controller is told of: they keep no more than is needed, and list anew
// when the server has gone back in time, as those of NewInformer. Then wentBack is called with the kind whose list it was and
// with what it has shown: for each of the kinds once, and by the informer itself, so that it must not block.
func NewInformers(set kubernetes.Interface, pods PodWatch, hookSet hooks.Set, wentBack func(kind string, err error)) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithTransform(trim))
	core, storage := set.CoreV1(), set.StorageV1()
	factory.InformerFor(&storagev1.StorageClass{}, InformerOf(&storagev1.StorageClass{}, storage.StorageClasses(), wentBack))
	factory.InformerFor(&corev1.PersistentVolume{}, InformerOf(&corev1.PersistentVolume{}, core.PersistentVolumes(), wentBack))
	factory.InformerFor(&corev1.PersistentVolumeClaim{}, InformerOf(&corev1.PersistentVolumeClaim{}, core.PersistentVolumeClaims(metav1.NamespaceAll), wentBack))
	if pods == PodsWatched {
		factory.InformerFor(&corev1.Pod{}, InformerOf(&corev1.Pod{}, core.Pods(metav1.NamespaceAll), wentBack))
	}
	if hookSet.Reclaims() {
		factory.InformerFor(&storagev1.VolumeAttachment{}, InformerOf(&storagev1.VolumeAttachment{}, storage.VolumeAttachments(), wentBack))
	}
	return factory
}

// NewSchedulingInformers returns informers of all that an Executor looks at, and of nodes, for a scheduler that has none. They are
// like those of NewInformers; wentBack is called for claims and volumes, and has to call ServerWentBack of the Executor.
func NewSchedulingInformers(set kubernetes.Interface, wentBack func(kind string, err error)) informers.SharedInformerFactory {
	factory := NewExecutorInformers(set, wentBack)
	factory.InformerFor(&corev1.Node{}, InformerOf(&corev1.Node{}, set.CoreV1().Nodes(), ignored))
	return factory
}

// NewExecutorInformers returns those of NewSchedulingInformers but for nodes, of which an Executor needs none.
func NewExecutorInformers(set kubernetes.Interface, wentBack func(kind string, err error)) informers.SharedInformerFactory {
	factory := NewInformers(set, PodsIgnored, hooks.Set{}, func(kind string, err error) {
		if kind != "StorageClass" { // it is known from its informer alone, so there is nothing to forget
			wentBack(kind, err)
		}
	})
	core, storage, all := set.CoreV1(), set.StorageV1(), metav1.NamespaceAll
	factory.InformerFor(&corev1.Pod{}, InformerOf(&corev1.Pod{}, core.Pods(all), ignored))
	factory.InformerFor(&storagev1.CSIDriver{}, InformerOf(&storagev1.CSIDriver{}, storage.CSIDrivers(), ignored))
	factory.InformerFor(&storagev1.CSINode{}, InformerOf(&storagev1.CSINode{}, storage.CSINodes(), ignored))
	factory.InformerFor(&storagev1.CSIStorageCapacity{}, InformerOf(&storagev1.CSIStorageCapacity{}, storage.CSIStorageCapacities(all), ignored))
	return factory
}

func ignored(string, error) {}

// Endpoint lists and watches the objects of one kind, as a typed client does.
type Endpoint[List runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (List, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// InformerOf returns what makes an informer of one kind for InformerFor of a factory: as NewInformer does, and with a function
// that is called when the server has gone back in time.
func InformerOf[List runtime.Object](object runtime.Object, at Endpoint[List], wentBack func(kind string, err error)) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(set kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		both := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return at.List(ctx, options)
			},
			WatchFuncWithContext: at.Watch,
		}
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		informer := newInformer(cache.ToListWatcherWithWatchListSemantics(both, set), object, resync, indexers)
		informer.OnWentBack(func(err error) { wentBack(reflect.TypeOf(object).Elem().Name(), err) })
		return informer
	}
}

// trim drops what no decision needs and no write carries, before an informer stores it: managedFields of everything; of a
// pod all but its identity, its node, its claims, when it was started and whether it has ended; of an attachment all but its identity, its
// volume and its node.
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

// trimAttachment returns what shows that a volume is attached. There may be tens of thousands of them.
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

// trimPod returns what package reclaim looks at in a pod. There may be a hundred thousand of them.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: claimVolumes(pod.Spec.Volumes)},
		Status: corev1.PodStatus{
			Phase:                      pod.Status.Phase,
			StartTime:                  pod.Status.StartTime,
			InitContainerStatuses:      trimContainers(pod.Status.InitContainerStatuses),
			ContainerStatuses:          trimContainers(pod.Status.ContainerStatuses),
			EphemeralContainerStatuses: trimContainers(pod.Status.EphemeralContainerStatuses),
		},
	}
}

// claimVolumes returns the volumes that stand for a claim.
func claimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, volume := range volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			kept = append(kept, volume)
		case volume.Ephemeral != nil:
			kept = append(kept, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		}
	}
	return kept
}

// trimContainers keeps whether a container runs.
func trimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, status := range statuses {
		var state corev1.ContainerState
		switch {
		case status.State.Waiting != nil:
			state.Waiting = &corev1.ContainerStateWaiting{}
		case status.State.Terminated != nil:
			state.Terminated = &corev1.ContainerStateTerminated{}
		}
		kept = append(kept, corev1.ContainerStatus{State: state})
	}
	return kept
}
