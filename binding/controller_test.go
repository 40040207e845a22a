package binding_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

// controllerCalls are the writes and reads that controllers made, one line each.
func controllerCalls(server *bindingtest.Server) (writes, reads []string) {
	for _, call := range server.Calls() {
		switch {
		case call.Actor == "" || call.Verb == bindingtest.VerbRecord:
		case call.Writes():
			writes = append(writes, call.String())
		default:
			reads = append(reads, call.String())
		}
	}
	return writes, reads
}

func TestB6ABindIsFourWritesAndNoRead(t *testing.T) {
	cluster := bindingtest.NewCluster(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))

	require.NoError(t, cluster.Settle(t.Context()))

	writes, reads := controllerCalls(cluster.Server)
	assert.Len(t, writes, 4, "%s", writes)
	assert.Empty(t, reads)
	assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
	assert.Equal(t, corev1.VolumeBound, cluster.Volume("pv").Status.Phase)
}

// crew drives a controller from many goroutines, as an adapter does: one queue that holds a key once, and
// watches that are delivered as they come.
type crew struct {
	controller *binding.Controller
	mu         sync.Mutex
	idle       *sync.Cond
	queue      []binding.Key
	queued     map[binding.Key]bool
	busy       int
	watches    []*bindingtest.Watch
	errs       []error
}

func newCrew(server *bindingtest.Server) *crew {
	client := server.NewClient("controller")
	c := &crew{controller: &binding.Controller{Client: client, Recorder: client}, queued: map[binding.Key]bool{}}
	c.idle = sync.NewCond(&c.mu)
	for _, kind := range bindingtest.Kinds() {
		c.watches = append(c.watches, server.Watch(kind))
	}
	return c
}

func (c *crew) add(keys []binding.Key) {
	for _, key := range keys {
		if !c.queued[key] {
			c.queued[key] = true
			c.queue = append(c.queue, key)
		}
	}
	c.idle.Broadcast()
}

func (c *crew) deliver() {
	for _, watch := range c.watches {
		for change, ok := watch.Next(); ok; change, ok = watch.Next() {
			c.add(c.controller.Observe(change.Object))
		}
	}
}

// next is a key to sync; false when nobody has work left.
func (c *crew) next() (binding.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliver()
	for len(c.queue) == 0 {
		if c.busy == 0 {
			return binding.Key{}, false
		}
		c.idle.Wait()
	}
	key := c.queue[0]
	c.queue = c.queue[1:]
	delete(c.queued, key)
	c.busy++
	return key, true
}

func (c *crew) done(result binding.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if err != nil {
		c.errs = append(c.errs, err)
	}
	c.deliver()
	c.add(result.Next)
}

func (c *crew) run(ctx context.Context, workers int) []error {
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for key, ok := c.next(); ok; key, ok = c.next() {
				c.done(c.controller.Sync(ctx, key))
			}
		})
	}
	wait.Wait()
	return c.errs
}

// TestB6WorkersNeverGetInEachOthersWay binds pairs of all sizes, more volumes than claims and fewer, with
// many workers: four writes a bind, no read, no conflict, nothing written twice.
func TestB6WorkersNeverGetInEachOthersWay(t *testing.T) {
	for _, test := range []struct{ volumes, claims, workers int }{
		{200, 200, 1}, {200, 200, 64}, {120, 200, 16}, {200, 120, 16},
	} {
		t.Run(fmt.Sprintf("%d volumes, %d claims, %d workers", test.volumes, test.claims, test.workers), func(t *testing.T) {
			server := bindingtest.NewServer()
			for i := range test.volumes {
				_, err := server.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", i), fmt.Sprintf("%dGi", 1+i%5)))
				require.NoError(t, err)
			}
			for i := range test.claims {
				_, err := server.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), fmt.Sprintf("%dGi", 1+i%5)))
				require.NoError(t, err)
			}

			require.Empty(t, newCrew(server).run(t.Context(), test.workers))

			binds := min(test.volumes, test.claims)
			writes, reads := controllerCalls(server)
			assert.Empty(t, reads)
			assert.Len(t, writes, 4*binds+max(0, test.volumes-test.claims), "and a volume that nobody wants becomes Available")
			assert.Equal(t, binds, countBound(t, server, test.claims))
		})
	}
}

// countBound counts the claims that are Bound, each to a volume of its own (X1).
func countBound(t *testing.T, server *bindingtest.Server, claims int) int {
	owners := map[string]string{}
	for i := range claims {
		claim := server.Claim("default", fmt.Sprintf("c-%03d", i))
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		require.Empty(t, owners[claim.Spec.VolumeName], "X1")
		owners[claim.Spec.VolumeName] = claim.Name
		require.Equal(t, claim.UID, server.Volume(claim.Spec.VolumeName).Spec.ClaimRef.UID)
	}
	return len(owners)
}
