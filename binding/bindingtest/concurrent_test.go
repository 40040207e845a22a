package bindingtest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 20
	server := bindingtest.NewServer()
	must.Create(t, server, bindingtest.Volume("shared", "1Gi"))
	watch := server.Watch(obj.KindVolume)
	var won atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		client := server.NewClient(fmt.Sprint("worker ", worker))
		client.Use(func(_ *bindingtest.Call, do func() error) error { return do() })
		all.Go(func() {
			for round := range rounds {
				won.Add(relabel(t, client, fmt.Sprint(worker, "-", round)))
				client.Record(binding.Event{On: keyA})
				server.Calls()
				server.Clone().Volume("shared")
				told(server.Watch(obj.KindVolume))
			}
		})
	}
	all.Wait()
	assert.Equal(t, won.Load()+1, int64(len(told(watch))), "one Added, and one Modified for each success")
	assert.Len(t, server.Calls(), 1+3*workers*rounds)
}

// relabel reads and updates the shared volume, and returns how many times that succeeded.
func relabel(t *testing.T, client *bindingtest.Client, label string) int64 {
	volume, err := client.GetVolume(t.Context(), "shared")
	if !assert.NoError(t, err) {
		return 0
	}
	volume.Labels = map[string]string{"last": label}
	if _, err = client.UpdateVolume(t.Context(), volume); err != nil {
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		return 0
	}
	return 1
}
