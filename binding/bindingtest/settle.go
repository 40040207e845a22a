package bindingtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
)

// retries is how often a sync that fails is tried again within one Settle.
const retries = 5

// Settle runs until idle: it drives the controller until it has nothing left to do. It tells it what changed, syncs what is
// to be synced, and goes on until no change is left that is not held.
//
// It returns what went wrong, joined: each *obj.InvalidError, and each sync that failed once more
// after five retries; neither keeps the others from being done. It returns at once with ErrCrashed when
// the client has crashed, with the context's error, and with an *UnsettledError when there is no end to
// it. The delays after which the controller syncs again do not count as work; see Delayed and AdvanceClock.
func (d *Driver) Settle(ctx context.Context) error { return Settle(ctx, d) }

// Settle runs several controllers on one server until all are idle: a sync each in turn, until none has anything left to
// do. See Driver.Settle.
func Settle(ctx context.Context, drivers ...*Driver) error {
	if len(drivers) == 0 {
		return nil
	}
	run := &run{
		watchdog: newWatchdog(drivers[0].server),
		failures: map[task]int{},
		problems: map[task]error{},
	}
	for busy := true; busy; {
		busy = false
		for _, d := range drivers {
			worked, err := run.step(ctx, d)
			if err != nil {
				return err
			}
			busy = busy || worked
		}
	}
	return run.result()
}

// task is a key that a driver's controller syncs.
type task struct {
	driver *Driver
	key    obj.Key
}

// run is one Settle.
type run struct {
	watchdog *watchdog
	failures map[task]int
	problems map[task]error
}

// step syncs one key and reports whether there was one.
func (r *run) step(ctx context.Context, d *Driver) (bool, error) {
	d.deliver()
	key, ok := d.queue.pop()
	if !ok {
		return false, nil
	}
	delete(d.delayed, key)
	result, err := d.Controller.Sync(ctx, key)
	if d.Client.Crashed() {
		return true, ErrCrashed
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if result.After > 0 {
		d.delayed[key] = result.After
	}
	r.record(task{d, key}, err)
	d.queue.add(result.Next...)
	return true, r.watchdog.check(key)
}

// record keeps what is wrong with a key, until a later sync of it succeeds.
func (r *run) record(task task, err error) {
	var invalid *obj.InvalidError
	switch {
	case err == nil:
		delete(r.failures, task)
		delete(r.problems, task)
	case errors.As(err, &invalid) || r.failures[task] == retries:
		r.problems[task] = err
	default:
		r.failures[task]++
		r.problems[task] = err
		task.driver.queue.add(task.key)
	}
}

func (r *run) result() error {
	tasks := slices.SortedFunc(maps.Keys(r.problems), func(a, b task) int {
		return cmp.Or(cmp.Compare(a.driver.Client.name, b.driver.Client.name), cmp.Compare(a.key.String(), b.key.String()))
	})
	var errs []error
	for _, task := range tasks {
		errs = append(errs, describe(task.key, r.problems[task]))
	}
	return errors.Join(errs...)
}

// describe adds the key to an error that does not name it itself.
func describe(key obj.Key, err error) error {
	if invalid := (*obj.InvalidError)(nil); errors.As(err, &invalid) && invalid.Object == key.String() {
		return err
	}
	return fmt.Errorf("%s: %w", key, err)
}

// UnsettledError says that a controller did not come to an end, and what it kept doing.
type UnsettledError struct {
	// Key is the object that was written, or the key that was synced, most often.
	Key obj.Key
	// Count is how often.
	Count int
	// Last are the last writes of that object, in order, each with its actor; empty if nothing wrote it.
	Last []string
}

func (e *UnsettledError) Error() string {
	if len(e.Last) == 0 {
		return fmt.Sprintf("does not settle: %s was synced %d times and nothing writes it", display(e.Key), e.Count)
	}
	return fmt.Sprintf("does not settle: %s was written %d times, last:\n\t%s", display(e.Key), e.Count, strings.Join(e.Last, "\n\t"))
}

const (
	maxWrites = 30 // of one object within one Settle; binding and unbinding it takes four
	shownLast = 6
)

// watchdog counts what happens within one Settle.
type watchdog struct {
	server *Server
	seen   int // calls looked at
	first  int // calls made before
	writes map[obj.Key]int
	syncs  map[obj.Key]int
}

func newWatchdog(server *Server) *watchdog {
	start := len(server.callsFrom(0))
	return &watchdog{server: server, seen: start, first: start, writes: map[obj.Key]int{}, syncs: map[obj.Key]int{}}
}

// check fails once an object was written, or the key was synced, more often than any end can take.
func (w *watchdog) check(key obj.Key) error {
	calls := w.server.callsFrom(w.seen)
	w.seen += len(calls)
	for _, call := range calls {
		if !call.Writes() || !call.Changed() {
			continue
		}
		if w.writes[call.Key]++; w.writes[call.Key] > maxWrites {
			return &UnsettledError{Key: call.Key, Count: w.writes[call.Key], Last: w.last(call.Key)}
		}
	}
	if w.syncs[key]++; w.syncs[key] > maxSyncs(w.server.count()) {
		return &UnsettledError{Key: key, Count: w.syncs[key], Last: w.last(key)}
	}
	return nil
}

// maxSyncs returns how often a key may be synced among so many objects: it allows that a claim is tried again for each volume, and
// a volume for each claim.
func maxSyncs(objects int) int { return 200 + 10*objects }

func (w *watchdog) last(key obj.Key) []string {
	var lines []string
	for _, call := range w.server.CallsSince(w.first) {
		if call.Key == key && call.Writes() && call.Changed() {
			lines = append(lines, strings.TrimPrefix(call.Actor+": "+call.String(), ": "))
		}
	}
	return lines[max(0, len(lines)-shownLast):]
}
