package controllerruntime_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/internal/settling"
	"github.com/pvbind/pvbind/binding/obj"
)

// onClient tells the stories on a client.
type onClient struct{ client.Client }

func (c onClient) Create(ctx context.Context, object obj.Object) error {
	return c.Client.Create(ctx, object.DeepCopyObject().(client.Object))
}

func (c onClient) Update(ctx context.Context, object obj.Object) error {
	return c.Client.Update(ctx, object.DeepCopyObject().(client.Object))
}

func (c onClient) Delete(ctx context.Context, object obj.Object) error {
	return c.Client.Delete(ctx, object.(client.Object))
}

func (c onClient) Get(ctx context.Context, object obj.Object) (obj.Object, error) {
	found := object.DeepCopyObject().(client.Object)
	return found, c.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
}

func (c onClient) List(ctx context.Context, kind obj.Kind) ([]obj.Object, error) {
	lists := map[obj.Kind]client.ObjectList{
		obj.KindVolume: &corev1.PersistentVolumeList{}, obj.KindClaim: &corev1.PersistentVolumeClaimList{}, obj.KindPod: &corev1.PodList{}, obj.KindNode: &corev1.NodeList{},
		obj.KindClass: &storagev1.StorageClassList{}, obj.KindCSINode: &storagev1.CSINodeList{}, obj.KindAttachment: &storagev1.VolumeAttachmentList{},
	}
	if err := c.Client.List(ctx, lists[kind]); err != nil {
		return nil, err
	}
	var objects []obj.Object
	err := meta.EachListItem(lists[kind], func(item runtime.Object) error {
		objects = append(objects, item.(obj.Object))
		return nil
	})
	return objects, err
}

func (c onClient) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	return controllerruntime.Settle(ctx, c.Client, options)
}

func TestClaimsJustBindOnTheFakeClient(t *testing.T) {
	settling.Run(t, func(*testing.T) settling.Cluster { return onClient{fake.NewClientBuilder().Build()} })
}
