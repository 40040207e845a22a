package settling

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// InMemory returns the server in memory as a Cluster.
func InMemory() Cluster { return inMemory{bindingtest.NewServer()} }

type inMemory struct{ *bindingtest.Server }

func (m inMemory) Create(ctx context.Context, object obj.Object) error {
	_, err := m.Server.Create(ctx, object)
	return err
}

func (m inMemory) Update(ctx context.Context, object obj.Object) error {
	_, err := m.Server.Update(ctx, object)
	return err
}

func (m inMemory) Delete(ctx context.Context, object obj.Object) error {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		return err
	}
	return m.Server.Delete(ctx, key, metav1.DeleteOptions{})
}

func (m inMemory) Get(ctx context.Context, object obj.Object) (obj.Object, error) {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		return nil, err
	}
	return m.Server.Get(ctx, key)
}

func (m inMemory) List(ctx context.Context, kind obj.Kind) ([]obj.Object, error) {
	return m.Server.List(ctx, kind, "")
}

func (m inMemory) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	return bindingtest.SettleOn(ctx, m.Server, options)
}
