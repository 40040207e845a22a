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
)

// newInformers are informers that keep no more than is needed, and that list again if the server went back in time.
//
// client-go's own do not notice that. After a restore from a backup they go on from the version that they had; the server
// takes the watch, and tells of nothing until it has come to that version once more.
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

// endpoint is where objects of one kind are listed and watched.
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

// watchFrom begins a watch. If it is to go on from a version that the server has not come to, it fails as it does where the
// version is too old, and whoever watches lists again. The server is asked after the watch has begun, so that a server which
// goes back later ends it.
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

// checkReached is an error if the newest version is older than another.
func checkReached(newest, version string) error {
	order, err := resourceversion.CompareResourceVersion(newest, version)
	if err != nil || order >= 0 {
		return nil // versions that cannot be compared say nothing
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("the server has come to resourceVersion %s only, not to %s: it may have been restored from a backup", newest, version))
}
