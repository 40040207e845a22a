package e2e

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// bindBlindly makes the four writes of each bind and decides nothing: the i-th volume is given to the i-th claim. It
// holds the watches open that a binder needs.
func bindBlindly(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	factory.Storage().V1().StorageClasses().Informer()
	core.Pods().Informer()
	core.PersistentVolumes().Informer()
	core.PersistentVolumeClaims().Informer()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, item := range core.PersistentVolumeClaims().Informer().GetStore().List() {
		claim := item.(*corev1.PersistentVolumeClaim).DeepCopy()
		found, err := core.PersistentVolumes().Lister().Get("v" + claim.Name[1:])
		if err != nil {
			return err
		}
		group.Go(func() error { return bindPair(ctx, client, found.DeepCopy(), claim) })
	}
	return group.Wait()
}

func bindPair(ctx context.Context, client kubernetes.Interface, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	const byController = "pv.kubernetes.io/bound-by-controller"
	volumes, claims := client.CoreV1().PersistentVolumes(), client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	volume.Annotations = map[string]string{byController: "yes"}
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
	volume, err := volumes.Update(ctx, volume, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	if _, err = volumes.UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Annotations = map[string]string{byController: "yes", "pv.kubernetes.io/bind-completed": "yes"}
	claim.Spec.VolumeName = volume.Name
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes, claim.Status.Capacity = volume.Spec.AccessModes, volume.Spec.Capacity
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
