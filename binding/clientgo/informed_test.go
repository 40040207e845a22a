package clientgo_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/informers"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
)

// secondOf is the second of two Runners on the same informers, after the first has ended.
func secondOf(t *testing.T, server *apitest.Server, shared informers.SharedInformerFactory) *running {
	run := func() *running {
		synced := make(chan struct{})
		r := start(t, server, func(r *clientgo.Runner) { r.Informers, r.Synced = shared, func() { close(synced) } })
		<-synced
		return r
	}
	first, second := run(), run()
	require.NoError(t, first.stop())
	return second
}

func TestInformersThatTheProgramStarts(t *testing.T) {
	server := newPair(t)
	shared := informers.NewSharedInformerFactory(clientset(t, server), 0)
	shared.Storage().V1().StorageClasses().Informer()
	shared.Core().V1().PersistentVolumes().Informer()
	shared.Core().V1().PersistentVolumeClaims().Informer()
	shared.Core().V1().Pods().Informer()
	shared.StartWithContext(t.Context())
	second := secondOf(t, server, shared)
	for _, object := range []obj.Object{bindingtest.Volume("late", "10Gi"), bindingtest.Claim("default", "late", "5Gi")} {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
	second.eventually(func() bool { return second.bound("late") }, "they go on, and so does the other Runner")
	require.NoError(t, second.stop())
}

func TestInformersThatSomebodyStops(t *testing.T) {
	server := newPair(t)
	second := secondOf(t, server, informers.NewSharedInformerFactory(clientset(t, server), 0))
	select {
	case err := <-second.ended:
		second.ended <- err
		require.EqualError(t, err, "clientgo.Runner.Informers: somebody has stopped them")
	case <-time.After(patience):
		require.Fail(t, "it goes on, and hears of nothing any more")
	}
}

// queues counts the goroutines of work queues.
func queues() int {
	stacks := make([]byte, 1<<22)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "workqueue.(*delayingType[...]).waitingLoop(")
}

func TestNothingIsLeftRunning(t *testing.T) {
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "pvbind_queue_length"}))
	for name, runner := range map[string]*clientgo.Runner{
		"metrics that cannot be registered": {Registerer: taken},
		"caches that are not filled":        {},
	} {
		t.Run(name, func(t *testing.T) {
			server := newPair(t)
			server.Deny(func(request apitestRequest) bool { return request.Resource == "storageclasses" })
			runner.Clientset, runner.Logger = clientset(t, server), slog.New(slog.DiscardHandler)
			before := queues()
			ctx, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer end()
			err := runner.Run(ctx)
			assert.Equal(t, runner.Registerer != nil, err != nil, "%v", err)
			require.Eventually(t, func() bool { return queues() <= before }, patience, 5*time.Millisecond, "the queue is not shut down")
		})
	}
}
