package bindingtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pvbind/pvbind/binding/obj"
)

// retries is how often a sync that fails is tried again within one Settle.
const retries = 5

// Settle drives the controller until it has nothing left to do: it tells it what changed, syncs what is
// to be synced, and goes on until no change is left that is not held.
//
// It returns what went wrong, joined: each *obj.InvalidError, and each sync that failed once more
// after five retries; neither keeps the others from being done. It returns at once with ErrCrashed when
// the client has crashed, with the context's error, and with an *UnsettledError when there is no end to
// it. Delays that the controller asks for do not count as work; see Delayed.
func (d *Driver) Settle(ctx context.Context) error { return Settle(ctx, d) }

// Settle drives several controllers on one server, a sync each in turn, until none has anything left to
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
	r.judge(task{d, key}, err)
	d.queue.add(result.Next...)
	return true, r.watchdog.check(key)
}

// judge keeps what is wrong with a key, until a later sync of it succeeds.
func (r *run) judge(task task, err error) {
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
