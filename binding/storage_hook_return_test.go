package binding_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

// provisioning is a cluster with a claim to provision, and its storage.
func provisioning(timeout time.Duration) (*Driven, *bindingtest.Storage) {
	storage := bindingtest.NewStorage()
	hookSet := storage.Hooks(Ours)
	hookSet.Timeout = timeout
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: hookSet}
	return NewDrivenWith(options, DirsClass(Ours, "Delete"), bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("dirs")))), storage
}

// A hook has returned when its answer is there: a sync that follows at once runs it again.
func TestRhACallThatAnsweredHasReturned(t *testing.T) {
	cluster, storage := provisioning(0)
	failed := errors.New("it failed")
	storage.Use(func(context.Context, *bindingtest.StorageCall, func() error) error { return failed })
	require.NoError(t, cluster.Settle(t.Context()))
	syncs := 20_000
	if testing.Short() {
		syncs = 1000
	}
	before := len(storage.Calls())
	for range syncs {
		_, err := cluster.Controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
	}
	assert.Equal(t, before+syncs, len(storage.Calls()))
}

// A hook that ends its goroutine, as t.FailNow does, has failed, and holds up nothing.
func TestRhAHookThatEndsItsGoroutine(t *testing.T) {
	cluster, storage := provisioning(time.Hour)
	calls := 0
	storage.Use(func(_ context.Context, _ *bindingtest.StorageCall, do func() error) error {
		if calls++; calls == 1 {
			runtime.Goexit()
		}
		return do()
	})
	require.NoError(t, cluster.Settle(t.Context()))
	require.NoError(t, cluster.AdvanceClock(t.Context()))
	assert.Equal(t, "pvc-"+string(cluster.Claim("default", "data").UID), cluster.Claim("default", "data").Spec.VolumeName)
}
