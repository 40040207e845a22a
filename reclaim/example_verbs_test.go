package reclaim_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
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

// Whether the claim is gone, and no pod uses the volume any more, only the server can say.
func ExampleOpen() {
	volume := shopVolume(corev1.PersistentVolumeReclaimRetain)
	_, err := reclaim.Open(volume, reclaim.Known{})
	refused := (*reclaim.Refusal)(nil)
	if errors.As(err, &refused) {
		fmt.Println("read", refused.Reads())
	}

	said := reclaim.Known{
		Missing: []reclaim.Read{{Kind: reclaim.ReadClaim, Namespace: "shop", Name: "orders"}},
		Pods:    map[string][]*corev1.Pod{"shop": {}},
	}
	change, err := reclaim.Open(volume, said)
	fmt.Println("claimRef:", change.Volume.Spec.ClaimRef, "error:", err)
	fmt.Println(change.Hazards)
	// Output:
	// read [pvc/shop/orders pods/shop]
	// claimRef: nil error: <nil>
	// [DataDisclosed: whoever gets it can read what shop/orders left on it]
}

func ExampleReserve() {
	volume := shopVolume(corev1.PersistentVolumeReclaimDelete)
	said := reclaim.Known{
		Missing: []reclaim.Read{{Kind: reclaim.ReadClaim, Namespace: "shop", Name: "orders"}, {Kind: reclaim.ReadClaim, Namespace: "archive", Name: "orders"}},
		Pods:    map[string][]*corev1.Pod{"shop": {}},
	}
	_, err := reclaim.Reserve(volume, bindingtest.Claim("archive", "orders", "10Gi"), said)
	refused := (*reclaim.Refusal)(nil)
	if errors.As(err, &refused) {
		for _, objection := range refused.Objections {
			fmt.Println(objection)
		}
	}

	kept := reclaim.Retain(volume)
	change, err := reclaim.Reserve(kept.Volume, bindingtest.Claim("archive", "orders", "5Gi"), said)
	fmt.Println(change.Volume.Spec.ClaimRef.Namespace, change.Volume.Spec.PersistentVolumeReclaimPolicy, err)
	// Output:
	// PolicyDestroys: its reclaim policy is Delete, so that what is on it may be on its way out: set the policy to Retain first (unless DataDestroyed is accepted)
	// Unfit: TooSmall: asks 10Gi, has 5Gi
	// archive Retain <nil>
}

func ExampleRetain() {
	volume := shopVolume(corev1.PersistentVolumeReclaimDelete)
	change := reclaim.Retain(volume)
	fmt.Println(change.Volume.Spec.PersistentVolumeReclaimPolicy, change.Hazards)

	volume.Status.Phase = corev1.VolumeBound // its claim exists
	fmt.Println(reclaim.Retain(volume).Hazards)
	// Output:
	// Retain [DataDestroyed: it is Released, so that reclaiming it may have begun]
	// []
}

// A volume goes from shop/orders to archive/orders. What the loop does not know it reads; after each write it knows
// nothing. Were it stopped anywhere, it would go on from there.
func ExampleNextMove() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Volume("pv-1", "5Gi", func(volume *corev1.PersistentVolume) {
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}),
		bindingtest.Claim("shop", "orders", "5Gi"),
	)
	check(cluster.Settle(ctx))
	to := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "archive", Name: "orders"}}

	var known reclaim.Known
	for {
		step, err := reclaim.NextMove(reclaim.Move{Volume: "pv-1", To: to}, known)
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
			err = cluster.Delete(ctx, binding.KeyOf(step.Claim), options)
		case reclaim.StepCreateClaim:
			_, err = cluster.Create(ctx, step.Claim)
		case reclaim.StepWait:
			err = cluster.Settle(ctx)
		case reclaim.StepDone:
			return
		}
		check(err)
	}
	// Output:
	// UpdateVolume pv/pv-1: keep it, and note that it moves from shop/orders to archive/orders
	// DeleteClaim pvc/shop/orders: pv-1 is kept
	// Wait: shop/orders is being deleted; held by [kubernetes.io/pvc-protection]
	// UpdateVolume pv/pv-1: shop/orders is gone: set it aside for archive/orders
	// CreateClaim pvc/archive/orders: pv-1 is set aside for it
	// Wait: it is set aside for archive/orders, which is there; a controller binds them
	// UpdateVolume pv/pv-1: archive/orders has it; its reclaim policy is Delete as before
	// Done: archive/orders has it
}

// read adds what the server says of one thing.
func read(ctx context.Context, server *bindingtest.Cluster, what reclaim.Read, known *reclaim.Known) error {
	switch what.Kind {
	case reclaim.ReadPods:
		pods, err := server.ListPods(ctx, what.Namespace)
		known.Pods = map[string][]*corev1.Pod{what.Namespace: pods}
		return err
	case reclaim.ReadVolume:
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
