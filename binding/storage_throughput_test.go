package binding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

const (
	hookTime    = 20 * time.Millisecond * slowedBy
	atOnce      = 16
	manyWorkers = 64
)

// storageDriver is a driver whose controller has a storage.
func storageDriver(t *testing.T, storage *bindingtest.Storage, edit func(*hooks.Set)) *driver {
	t.Helper()
	server := bindingtest.NewServer()
	storage.Attach(server)
	hookSet := storage.Hooks(Ours, "hostPath")
	hookSet.MaxConcurrent = 2 * atOnce // of which one namespace has half
	edit(&hookSet)
	c := newDriver(server)
	c.controller.Hooks, c.controller.Options.Protection = hookSet, decision.ProtectionOn
	_, err := server.Create(t.Context(), DirsClass(Ours, corev1.PersistentVolumeReclaimDelete))
	require.NoError(t, err)
	return c
}

func createClaims(t *testing.T, server *bindingtest.Server, n int, class string) {
	t.Helper()
	for i := range n {
		_, err := server.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), "1Gi", RequestingClass(&class)))
		require.NoError(t, err)
	}
}

// TestRhManyAreProvisionedAndDeleted: each takes no more than 1.5 times as long as the hooks do, so many at once.
// What else the machine is busy with can make a round slow, but hardly each of five.
func TestRhManyAreProvisionedAndDeleted(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	worst := 0.0
	for range 5 {
		provision, remove := roundOfMany(t, n)
		t.Logf("%d provisioned in %.2f, deleted in %.2f times %s", n, provision, remove, idealTime(n))
		if worst = max(provision, remove); worst <= 1.5 {
			return
		}
	}
	assert.LessOrEqual(t, worst, 1.5)
}

// idealTime is what n hooks take if there are always as many at work as may be.
func idealTime(n int) time.Duration { return time.Duration(n) * hookTime / atOnce }

// roundOfMany is how long it takes to provision and to delete n volumes, in ideal times.
func roundOfMany(t *testing.T, n int) (provision, remove float64) {
	storage := bindingtest.NewStorage()
	storage.Use(func(_ context.Context, _ *bindingtest.StorageCall, do func() error) error {
		time.Sleep(hookTime)
		return do()
	})
	c := storageDriver(t, storage, func(*hooks.Set) {})
	run := func() float64 {
		start := time.Now()
		require.Empty(t, c.run(t.Context(), manyWorkers))
		return float64(time.Since(start)) / float64(idealTime(n))
	}
	createClaims(t, c.server, n, "dirs")
	provision = run()
	require.Equal(t, n, CountBound(t, c.server, n))
	require.Len(t, storage.Kept(), n)
	for i := range n {
		require.NoError(t, c.server.Delete(t.Context(), obj.ClaimKey("default", fmt.Sprintf("c-%03d", i)), metav1.DeleteOptions{}))
	}
	remove = run()
	require.Empty(t, storage.Kept())
	require.Empty(t, storage.Problems())
	require.Len(t, storage.Calls(), 2*n, "each hook is called once")
	return provision, remove
}
