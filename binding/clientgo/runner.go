package clientgo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding"
)

// Runner runs a binding.Controller on a cluster: informers tell it what changes, and workers sync what it asks for.
// Set Clientset and call Run; every other field has a useful zero value. None may change while it runs.
type Runner struct {
	// Clientset is the API server. Its rate limits bound what all workers do together.
	Clientset kubernetes.Interface
	// Rules and Hooks are those of the Controller.
	Rules binding.Rules
	Hooks binding.Hooks
	// Pods are watched unless it says otherwise.
	Pods PodWatch

	// Workers is how many syncs run at once; 64 if zero. Nearly all their time is spent waiting for the server.
	Workers int
	// Resync is how often all claims and volumes are synced though nothing has changed, as a safety net: 10 minutes
	// if zero, never if negative. Where all is settled that costs no request. It also finds objects that went while
	// nothing could be watched, and that only a reply of the server had shown; and, after etcd was restored from a backup,
	// objects that are there again, or in an older version.
	Resync time.Duration
	// StopWithin is how long syncs that are under way may go on once the context of Run has ended; 10 s if zero.
	StopWithin time.Duration

	// Recorder publishes events; nil: StartRecorder on the Clientset.
	Recorder binding.Recorder
	// Informers are those of a program that watches the same kinds itself. If a transform is set on them it must leave
	// claims and volumes whole, but for managedFields. Run starts those that nobody has started, and they stop with its
	// context: a program that needs them for longer, as for another Runner, asks for the same kinds and starts them
	// first. Nil: informers that keep no more than is needed, and that notice, by one small list whenever a watch has to
	// begin anew, that a server was restored and its resourceVersions went back. Those of client-go do not: they see nothing
	// for as long as the server is behind.
	Informers informers.SharedInformerFactory
	// Registerer is where the metrics are registered while Run runs; nil: there are none.
	Registerer prometheus.Registerer
	// Logger gets a warning for each sync that failed; nil: slog.Default.
	Logger *slog.Logger
	// Synced, if not nil, is called once all caches are filled, before the first sync.
	Synced func()
}

const (
	defaultWorkers    = 64
	defaultResync     = 10 * time.Minute
	defaultStopWithin = 10 * time.Second
)

// Run works until the context ends, and returns nil then. It begins once all caches are filled; until the server lets
// it list a kind, it waits and client-go logs why; that a connection is refused, from klog's level 2 on only. At the end
// it begins no sync any more, lets those under way come to their end within StopWithin, and stops all that it has
// started. An informer that sleeps, because it was refused a connection, ends when it wakes. Errors are those of the
// Runner's fields; one of Informers may come late, if somebody stops them while Run needs them.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("clientgo.Runner: %w", err)
	}
	crew := newCrew(r)
	defer crew.queue.ShutDown()
	if r.Registerer != nil {
		if err := crew.metrics.register(r.Registerer); err != nil {
			return fmt.Errorf("clientgo.Runner.Registerer: %w", err)
		}
		defer crew.metrics.unregister(r.Registerer)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // what must outlive the syncs
	defer stop()
	crew.controller.Recorder = r.Recorder
	if r.Recorder == nil {
		crew.controller.Recorder = StartRecorder(running, r.Clientset)
	}
	watch, err := startWatch(ctx, r, crew)
	if err != nil {
		return fmt.Errorf("clientgo.Runner.Informers: %w", err)
	}
	defer watch.stop()
	informed, end := watch.informed(ctx)
	defer end()
	if watch.synced(informed) {
		if r.Synced != nil {
			r.Synced()
		}
		crew.work(informed, running, watch)
	}
	if errors.Is(context.Cause(informed), errStopped) {
		return fmt.Errorf("clientgo.Runner.Informers: %w", errStopped)
	}
	return nil
}

func (r *Runner) check() error {
	switch {
	case r.Clientset == nil:
		return errors.New("no Clientset")
	case r.Workers < 0:
		return fmt.Errorf("negative Workers: %d", r.Workers)
	}
	return r.Pods.Check(r.Rules, r.Hooks)
}

func (r *Runner) logger() *slog.Logger { return cmp.Or(r.Logger, slog.Default()) }
