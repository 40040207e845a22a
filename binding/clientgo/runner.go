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
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
)

// Runner runs a binding.Controller on a cluster: informers report changes to it, and workers sync the keys that it returns.
// Set Clientset and call Run; every other field has a useful zero value. None may change while it runs.
type Runner struct {
	// Clientset is the API server. Its rate limits bound what all workers do together.
	Clientset kubernetes.Interface
	// Options and Hooks are those of the Controller.
	Options decision.Options
	Hooks   hooks.Set
	// Pods is PodsWatched unless set.
	Pods PodWatch

	// Workers is how many syncs run at once, at most half of them for one namespace; 64 if zero. The namespaces that wait are
	// served in turn. Nearly all the time of a sync is spent waiting for the server.
	Workers int
	// Resync is how often all claims and volumes are synced though nothing has changed, as a safety net: 10 minutes
	// if zero, never if negative. Where all is settled that costs no request. It also finds objects that went while
	// nothing could be watched and that were known from a reply of the server only; and, after etcd was restored from a
	// backup, objects that exist again, or in an older version.
	Resync time.Duration
	// StopWithin is how long syncs that are under way may go on once the context of Run has ended; 10 s if zero.
	StopWithin time.Duration

	// Recorder publishes events; nil: StartRecorder on the Clientset.
	Recorder binding.Recorder
	// Informers are those of a program that watches the same kinds itself. If a transform is set on them it must leave
	// claims and volumes whole, but for managedFields. Run starts those that nobody has started, and they stop with its
	// context: a program that needs them for longer, as for another Runner, asks for the same kinds and starts them
	// first. Nil: those of NewInformers, which keep no more than is needed, and which notice when the server was restored and
	// its resourceVersions went back, at the cost of one small list whenever a watch begins anew. Those of client-go do not
	// notice: they see nothing for as long as the server is behind. Each Resync therefore asks, by one small list of each
	// kind, how far the server is. Where such informers are ahead of it, the Runner watches with its own from then on, and
	// forgets at a Resync the classes, pods and attachments that are gone. What else the program uses its informers for sees
	// nothing still, so that it had better make them by InformerOf.
	// Without Resync nothing is noticed.
	Informers informers.SharedInformerFactory
	// Registerer is where the metrics are registered while Run runs; nil: there are none.
	Registerer prometheus.Registerer
	// Logger gets a warning for each sync that failed, and those of WarningLog; nil: slog.Default.
	Logger *slog.Logger
	// Synced, if not nil, is called once all caches are filled, before the first sync.
	Synced func()
}

const (
	defaultWorkers    = 64
	defaultResync     = 10 * time.Minute
	defaultStopWithin = 10 * time.Second
)

// Run works until the context ends, and returns nil then. It begins once all caches are filled. Until the server lets
// it list a kind, it waits, and client-go logs why: a refused connection from klog's level 2 on only. At the end it begins
// no further sync, gives those under way StopWithin to end, and stops all that it has started. An informer that sleeps
// because it was refused a connection ends when it wakes. Errors are those of the Runner's fields. One of Informers may
// come late, if somebody stops them while Run needs them.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("clientgo.Runner: %w", err)
	}
	workers := newWorkers(r)
	defer workers.queue.ShutDown()
	if r.Registerer != nil {
		if err := workers.metrics.register(r.Registerer); err != nil {
			return fmt.Errorf("clientgo.Runner.Registerer: %w", err)
		}
		defer workers.metrics.unregister(r.Registerer)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // what must outlive the syncs
	defer stop()
	workers.warnings.Recorder = r.Recorder
	if r.Recorder == nil {
		events := startRecorder(running, r.Clientset)
		defer func() { stop(); <-events.ended }()
		workers.warnings.Recorder = events
	}
	watch, err := startWatch(ctx, r, workers)
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
		workers.run(informed, running, watch)
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
	return r.Pods.Check(r.Options, r.Hooks)
}

func (r *Runner) logger() *slog.Logger { return cmp.Or(r.Logger, slog.Default()) }

// PodWatch is whether pods are watched.
type PodWatch string

const (
	// PodsWatched means that the events of a claim name the pods that it waits for (C3), and that it is synced when they
	// change (W5).
	PodsWatched PodWatch = ""
	// PodsIgnored means that the events of a claim say only that it waits for a consumer (C3). Protection (so that
	// Options must have decision.ProtectionOff) and recycling cannot be combined with it, for they depend on whether a pod is
	// gone.
	PodsIgnored PodWatch = "Ignored"
)

// Check returns an error where these options or hooks depend on pods that are not watched.
func (p PodWatch) Check(options decision.Options, hookSet hooks.Set) error {
	switch {
	case p != PodsWatched && p != PodsIgnored:
		return fmt.Errorf("unknown Pods: %q", p)
	case p == PodsIgnored && options.Protection != decision.ProtectionOff:
		return errors.New("protection depends on pods, and Pods is Ignored")
	case p == PodsIgnored && len(hookSet.Recyclers) > 0:
		return errors.New("recyclers depend on pods, and Pods is Ignored")
	}
	return nil
}
