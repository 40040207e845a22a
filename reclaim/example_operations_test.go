package reclaim_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// shopVolume is a volume that shop/orders had, which was deleted.
func shopVolume(policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	volume := bindingtest.Volume("pv-1", "5Gi")
	volume.Spec.PersistentVolumeReclaimPolicy = policy
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "orders", UID: "2d4"}
	volume.Status.Phase = corev1.VolumeReleased
	return volume
}

// Only the server knows whether the claim is gone and no pod uses the volume any more.
func ExampleMakeAvailable() {
	volume := shopVolume(corev1.PersistentVolumeReclaimRetain)
	_, err := reclaim.MakeAvailable(volume, reclaim.Known{})
	failed := (*reclaim.Error)(nil)
	if errors.As(err, &failed) {
		fmt.Println("read", failed.Reads())
	}

	known := reclaim.Known{
		Missing: []obj.Key{{Kind: obj.KindClaim, Namespace: "shop", Name: "orders"}},
		Pods:    map[string][]*corev1.Pod{"shop": {}},
	}
	change, err := reclaim.MakeAvailable(volume, known)
	fmt.Println("claimRef:", change.Volume.Spec.ClaimRef, "error:", err)
	fmt.Println(change.Warnings)
	// Output:
	// read [pvc/shop/orders pods/shop]
	// claimRef: nil error: <nil>
	// [DataDisclosed: whoever gets it can read what shop/orders left on it]
}

func ExampleReserve() {
	volume := shopVolume(corev1.PersistentVolumeReclaimDelete)
	known := reclaim.Known{
		Missing: []obj.Key{{Kind: obj.KindClaim, Namespace: "shop", Name: "orders"}, {Kind: obj.KindClaim, Namespace: "archive", Name: "orders"}},
		Pods:    map[string][]*corev1.Pod{"shop": {}},
	}
	_, err := reclaim.Reserve(volume, bindingtest.Claim("archive", "orders", "10Gi"), known)
	failed := (*reclaim.Error)(nil)
	if errors.As(err, &failed) {
		for _, reason := range failed.Reasons {
			fmt.Println(reason)
		}
	}

	kept := reclaim.SetRetain(volume)
	change, err := reclaim.Reserve(kept.Volume, bindingtest.Claim("archive", "orders", "5Gi"), known)
	fmt.Println(change.Volume.Spec.ClaimRef.Namespace, change.Volume.Spec.PersistentVolumeReclaimPolicy, err)
	// Output:
	// PolicyDestroys: its reclaim policy is Delete, so that what is on it may be on its way out: set the policy to Retain first (unless DataDestroyed is accepted)
	// Unfit: TooSmall: requested 10Gi, actual 5Gi
	// archive Retain <nil>
}

func ExampleSetRetain() {
	volume := shopVolume(corev1.PersistentVolumeReclaimDelete)
	change := reclaim.SetRetain(volume)
	fmt.Println(change.Volume.Spec.PersistentVolumeReclaimPolicy, change.Warnings)

	volume.Status.Phase = corev1.VolumeBound // its claim exists
	fmt.Println(reclaim.SetRetain(volume).Warnings)
	// Output:
	// Retain [DataDestroyed: it is Released, so that reclaiming it may have begun]
	// []
}

// A volume is transferred from shop/orders to archive/orders. The loop reads what is not known, and forgets it after each
// write. It can be stopped anywhere and goes on from there.
func ExampleNextTransfer() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Volume("pv-1", "5Gi", func(volume *corev1.PersistentVolume) {
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}),
		bindingtest.Claim("shop", "orders", "5Gi"),
	)
	_, err := cluster.Settle(ctx)
	check(err)
	to := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "archive", Name: "orders"}}

	var known reclaim.Known
	for {
		step, err := reclaim.NextTransfer(reclaim.Transfer{Volume: "pv-1", To: to}, known)
		check(err)
		if step.Kind == reclaim.StepRead {
			check(read(ctx, cluster, step.Read, &known))
			continue
		}
		known = reclaim.Known{}
		fmt.Println(step)
		switch step.Kind {
		case reclaim.StepUpdateVolume:
			_, err = cluster.UpdateVolume(ctx, step.Volume)
		case reclaim.StepDeleteClaim:
			options := metav1.DeleteOptions{Preconditions: &step.Preconditions}
			err = cluster.Delete(ctx, obj.KeyOf(step.Claim), options)
		case reclaim.StepCreateClaim:
			_, err = cluster.Create(ctx, step.Claim)
		case reclaim.StepWait:
			_, err = cluster.Settle(ctx)
		case reclaim.StepDone:
			return
		}
		check(err)
	}
	// Output:
	// UpdateVolume pv/pv-1: set its policy to Retain, and record the transfer from shop/orders to archive/orders
	// DeleteClaim pvc/shop/orders: the policy of pv-1 is Retain
	// Wait: shop/orders is being deleted; held by [kubernetes.io/pvc-protection]
	// UpdateVolume pv/pv-1: shop/orders is gone: pre-bind it to archive/orders
	// CreateClaim pvc/archive/orders: pv-1 is pre-bound to it
	// Wait: it is pre-bound to archive/orders, which exists; a controller binds them
	// UpdateVolume pv/pv-1: archive/orders has it; its reclaim policy is Delete as before
	// Done: archive/orders has it
}

// read adds one live read to what is known.
func read(ctx context.Context, server *bindingtest.Cluster, what obj.Key, known *reclaim.Known) error {
	switch what.Kind {
	case obj.KindPods:
		pods, err := server.ListPods(ctx, what.Namespace)
		known.Pods = map[string][]*corev1.Pod{what.Namespace: pods}
		return err
	case obj.KindVolume:
		volume, err := server.GetVolume(ctx, what.Name)
		known.Volumes = append(known.Volumes, volume)
		return err
	}
	claim, err := server.GetClaim(ctx, what.Namespace, what.Name)
	if apierrors.IsNotFound(err) {
		known.Missing = append(known.Missing, what)
		return nil
	}
	known.Claims = append(known.Claims, claim)
	return err
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
