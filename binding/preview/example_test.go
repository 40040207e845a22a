package preview_test

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/preview"
)

// What would deleting this claim do?
func ExampleOf() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Volume("pv-1", "5Gi", func(volume *corev1.PersistentVolume) {
			volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}),
		bindingtest.Claim("shop", "orders", "5Gi"),
	)
	if _, err := cluster.Settle(ctx); err != nil {
		fmt.Println(err)
	}
	claim, volume := cluster.Claim("shop", "orders"), cluster.Volume("pv-1")
	now := preview.Cluster{Objects: []obj.Object{claim, volume}}

	outcome, err := preview.Of(ctx, now, preview.Delete(claim))
	fmt.Print(outcome)

	kept := volume.DeepCopy()
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	saved, _ := preview.Of(ctx, now, preview.Update(kept), preview.Delete(claim))
	text, _ := json.Marshal(saved.Storage)
	fmt.Println(string(text), err)
	// Output:
	// pv/pv-1: Bound -> Released
	// pvc/shop/orders: Bound -> gone
	// storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders
	// [{"volume":"pv-1","outcome":"Kept","claim":"shop/orders","why":"its reclaim policy is Retain"}] <nil>
}

// With a deleter of our own the volume goes too. Its hook is not run.
func ExampleCluster() {
	ctx := context.Background()
	volume := bindingtest.Volume("pv-1", "5Gi", func(volume *corev1.PersistentVolume) {
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	claim, pod := bindingtest.Claim("shop", "orders", "5Gi"), bindingtest.Pod("shop", "web", "node-1", "orders")
	cluster := preview.Cluster{Objects: []obj.Object{volume, claim, pod}}
	cluster.Options.Hooks.SourceDeleters = sets.New("hostPath")

	outcome, _ := preview.Of(ctx, cluster, preview.Delete(claim))
	fmt.Println(outcome)
	outcome, _ = preview.Of(ctx, cluster, preview.Delete(claim), preview.Delete(pod))
	fmt.Print(outcome.Effects.Storage)
	// Output:
	// pvc/shop/orders stays: held by kubernetes.io/pvc-protection, used by pod/shop/web
	// without the changes, for it was not at rest:
	//   pv/pv-1: Pending -> Bound
	//   pvc/shop/orders: Pending -> Bound
	//
	// [storage of pv/pv-1: Deleted by hostPath, with the data of shop/orders]
}
