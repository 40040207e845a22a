package bindingtest_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/settling"
	"github.com/pvbind/pvbind/binding/obj"
)

// inMemory tells the stories on a server in memory.
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

func (m inMemory) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	return bindingtest.SettleOn(ctx, m.Server, options)
}

func TestClaimsJustBind(t *testing.T) {
	settling.Run(t, func(*testing.T) settling.Cluster { return inMemory{bindingtest.NewServer()} })
}
