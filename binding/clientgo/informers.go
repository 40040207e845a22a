package clientgo

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// newInformers returns informers that keep no more than is needed, and that list again if the server went back in time.
//
// client-go's own do not notice that. After a restore from a backup they go on from the version that they had. The server
// accepts the watch, and sends nothing until it has reached that version once more.
func newInformers(r *Runner) informers.SharedInformerFactory {
	set := r.Clientset
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithTransform(trim))
	core, storage := set.CoreV1(), set.StorageV1()
	factory.InformerFor(&storagev1.StorageClass{}, informerOf(&storagev1.StorageClass{}, storage.StorageClasses()))
	factory.InformerFor(&corev1.PersistentVolume{}, informerOf(&corev1.PersistentVolume{}, core.PersistentVolumes()))
	factory.InformerFor(&corev1.PersistentVolumeClaim{}, informerOf(&corev1.PersistentVolumeClaim{}, core.PersistentVolumeClaims(metav1.NamespaceAll)))
	if r.Pods == PodsWatched {
		factory.InformerFor(&corev1.Pod{}, informerOf(&corev1.Pod{}, core.Pods(metav1.NamespaceAll)))
	}
	if r.Hooks.Reclaims() {
		factory.InformerFor(&storagev1.VolumeAttachment{}, informerOf(&storagev1.VolumeAttachment{}, storage.VolumeAttachments()))
	}
	return factory
}

// list is a typed list of objects.
type list interface {
	runtime.Object
	metav1.ListMetaAccessor
}

// endpoint lists and watches the objects of one kind.
type endpoint[L list] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

func informerOf[L list](object runtime.Object, at endpoint[L]) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(set kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		both := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return at.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
				return watchFrom(ctx, at, options)
			},
		}
		return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(both, set), object,
			cache.SharedIndexInformerOptions{ResyncPeriod: resync})
	}
}

// watchFrom begins a watch. If that is to go on from a version that the server has not reached, it fails as where the
// version is too old, and the informer lists again. The newest version is read after the watch has begun, so that a server
// that goes back later ends the watch.
func watchFrom[L list](ctx context.Context, at endpoint[L], options metav1.ListOptions) (apiwatch.Interface, error) {
	begun, err := at.Watch(ctx, options)
	from := options.ResourceVersion
	if err != nil || options.SendInitialEvents != nil || from == "" || from == "0" {
		return begun, err
	}
	newest, err := at.List(ctx, metav1.ListOptions{Limit: 1}) // without a version: as new as the server has
	if err == nil {
		err = checkReached(newest.GetListMeta().GetResourceVersion(), from)
	}
	if err != nil {
		begun.Stop()
		return nil, err
	}
	return begun, nil
}

// checkReached returns an error if the newest version is older than the other.
func checkReached(newest, version string) error {
	order, err := resourceversion.CompareResourceVersion(newest, version)
	if err != nil || order >= 0 {
		return nil // versions that cannot be compared prove nothing
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("the server has reached resourceVersion %s only, not %s: it may have been restored from a backup", newest, version))
}

// trim drops what no decision needs and no write carries, before an informer stores it: managedFields of everything; of a
// pod all but its identity, its node, its claims and whether it has ended; of an attachment all but its identity, its
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
