package controllerruntime_test

import (
	"context"
	"testing"

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

func (c onClient) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	return controllerruntime.Settle(ctx, c.Client, options)
}

func TestClaimsJustBindOnTheFakeClient(t *testing.T) {
	settling.Run(t, func(*testing.T) settling.Cluster { return onClient{fake.NewClientBuilder().Build()} })
}
