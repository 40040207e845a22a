package clientgo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// workers are a controller, the queue of what it is to sync, and the goroutines that do.
//
// The queue has no rate limiter of its own: how long to wait after a failure is the controller's business, which
// counts failures by key (W6).
type workers struct {
	controller *binding.Controller
	queue      workqueue.TypedDelayingInterface[obj.Key]
	metrics    *metrics
	log        *slog.Logger
	restores   Occurrence
	warnings   WarningLog

	count      int
	resync     time.Duration
	stopWithin time.Duration
}

func newWorkers(r *Runner) *workers {
	w := &workers{
		queue:      workqueue.NewTypedDelayingQueue[obj.Key](),
		log:        r.logger(),
		count:      cmp.Or(r.Workers, defaultWorkers),
		resync:     cmp.Or(r.Resync, defaultResync),
		stopWithin: cmp.Or(r.StopWithin, defaultStopWithin),
	}
	w.metrics = newMetrics(w.queue.Len)
	client := &Client{Clientset: r.Clientset, called: w.metrics.called}
	w.warnings.Log = w.logWarning
	w.controller = &binding.Controller{Client: client, Recorder: &w.warnings, Options: r.Options, Hooks: r.Hooks, Workers: w.count}
	return w
}

func (w *workers) logWarning(event decision.Event) {
	of := []any{"key", event.On.String()}
	if event.Hook != "" {
		of = append(of, "hook", event.Hook)
	}
	w.log.Warn(string(event.Reason), append(of, "error", event.Message)...)
}

func (w *workers) add(keys ...obj.Key) {
	for _, key := range keys {
		w.queue.Add(key)
	}
}

// run syncs until ctx ends. Syncs get the context running, which is cancelled for them only if they take too long to
// end.
func (w *workers) run(ctx, running context.Context, known caches) {
	syncing, cancel := context.WithCancel(running)
	defer cancel()
	var group sync.WaitGroup
	for range w.count + 1 { // one to see who comes while all workers are busy (W9)
		group.Go(func() {
			for w.next(ctx, syncing) {
			}
		})
	}
	w.resyncUntil(ctx, known)
	w.queue.ShutDown()
	timer := time.AfterFunc(w.stopWithin, cancel)
	defer timer.Stop()
	group.Wait()
}

// next syncs one key. What is still queued when the context ends is left: the next start finds it again.
func (w *workers) next(ctx, syncing context.Context) bool {
	key, closed := w.queue.Get()
	if closed {
		return false
	}
	defer w.queue.Done(key)
	if ctx.Err() == nil {
		w.sync(syncing, key)
	}
	return true
}

// sync syncs a key, and queues what the result of that says.
func (w *workers) sync(ctx context.Context, key obj.Key) {
	result, err := w.controller.Sync(ctx, key)
	w.add(result.Next...)
	if result.After > 0 {
		w.queue.AddAfter(key, result.After)
	}
	w.metrics.synced(key, err)
	if errors.Is(err, binding.ErrServerWentBack) && w.restores.Begins("") {
		w.metrics.wentBack.Inc()
	}
	if err != nil {
		w.log.WarnContext(ctx, "sync failed", "key", key.String(), "error", err, "retry", result.After)
	}
}

// serverWentBack has all that is known read anew, and tells of it once each time that the server went back in time. Kind is the one
// whose list has shown it.
func (w *workers) serverWentBack(kind string, err error) {
	if !w.restores.Begins(kind) {
		w.add(w.controller.ObserveRestoreAgain()...)
		return
	}
	w.metrics.wentBack.Inc()
	keys := w.controller.ObserveRestore()
	w.log.Warn("the server went back in time; nothing is destroyed until every claim and volume has been read anew", "kind", kind, "error", err, "objects", len(keys))
	w.add(keys...)
}

// caches are those of the informers.
type caches interface {
	check(context.Context)
	filled() bool
	objects() []obj.Object
	has(obj.Object) bool
}

// resyncUntil has everything in the caches rechecked from time to time until the context ends, and what is known and in no cache.
func (w *workers) resyncUntil(ctx context.Context, known caches) {
	if w.resync < 0 {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(w.resync)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			known.check(ctx)
			w.recheckKnown(known)
			for _, object := range known.objects() {
				w.add(w.controller.Recheck(object)...)
			}
		}
	}
}

// recheckKnown has read which claims and volumes the controller knows and no cache has: they may be gone. If one went while nothing could
// be watched, no informer will ever report its end; nor again, where a cache has answered a read with the object after its end was
// reported. Objects of other kinds are forgotten: informers that replace others report the end of none that those had.
func (w *workers) recheckKnown(known caches) {
	if !known.filled() {
		return
	}
	keys := w.controller.RecheckKnown(known.has)
	for _, key := range keys {
		w.warnings.Forget(key)
	}
	w.add(keys...)
}

func keyOf(object obj.Object) obj.Key {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		return obj.KeyOf(claim)
	}
	return obj.VolumeKey(object.GetName())
}
