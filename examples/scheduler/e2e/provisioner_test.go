package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/storageclass"
)

// provision makes volumes of class made as a provisioner does, on the node that is selected, until the test ends.
func (w *world) provision() {
	factory := informers.NewSharedInformerFactoryWithOptions(w.Client, 0, informers.WithNamespace(w.Namespace))
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	ask := func(object any) { queue.Add(object.(*corev1.PersistentVolumeClaim).Name) }
	_, _ = claims.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ask, UpdateFunc: func(_, now any) { ask(now) }})
	ctx, end := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for name, ended := queue.Get(); !ended; name, ended = queue.Get() {
			if stored, known, _ := claims.GetStore().GetByKey(w.Namespace + "/" + name); known && w.make(ctx, stored.(*corev1.PersistentVolumeClaim)) != nil {
				queue.AddRateLimited(name)
			}
			queue.Done(name)
		}
	}()
	w.Cleanup(func() {
		end()
		queue.ShutDown()
		<-done
	})
}

func (w *world) make(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	node := claim.Annotations[storageclass.SelectedNodeAnnotation]
	if node == "" || claim.Spec.VolumeName != "" || claim.Annotations["volume.kubernetes.io/storage-provisioner"] != w.Disks() {
		return nil
	}
	volume := w.Disk("pvc-"+string(claim.UID), claim.Spec.Resources.Requests.Storage().String(), node[len(w.Namespace)+1:])
	volume.Spec.StorageClassName = w.Of("made")
	volume.Spec.AccessModes, volume.Spec.VolumeMode = claim.Spec.AccessModes, claim.Spec.VolumeMode
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: w.Namespace, Name: claim.Name, UID: claim.UID}
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, "pv.kubernetes.io/provisioned-by", w.Disks())
	err := w.CreateOne(ctx, volume)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
