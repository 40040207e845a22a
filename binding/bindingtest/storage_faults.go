package bindingtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pvbind/pvbind/binding"
)

// StorageMatch says which calls of a Storage a fault is about.
type StorageMatch func(*StorageCall) bool

// AnyStorageCall matches all of them.
func AnyStorageCall(*StorageCall) bool { return true }

// OnStorage matches the calls of a verb.
func OnStorage(verb StorageVerb) StorageMatch {
	return func(call *StorageCall) bool { return call.Verb == verb }
}

// FailStorage makes the n-th matching call, counted from 1, fail with err before it has an effect. With a
// *binding.HookError a storage says more than that it failed.
func FailStorage(n int, match StorageMatch, err error) StorageHook {
	return nthStorage(n, match, func(context.Context, *StorageCall, func() error) error { return err })
}

// LieStorage lets the n-th matching call take effect and fails it with ErrAnswerLost.
func LieStorage(n int, match StorageMatch) StorageHook {
	return nthStorage(n, match, func(_ context.Context, _ *StorageCall, do func() error) error {
		_ = do()
		return ErrAnswerLost
	})
}

// DelayStorage answers the n-th matching call with "in progress, ask again after": it has no effect yet.
func DelayStorage(n int, match StorageMatch, after time.Duration) StorageHook {
	return FailStorage(n, match, &binding.HookError{Meaning: binding.HookInProgress, After: after})
}

// PanicStorage makes the n-th matching call panic before it has an effect.
func PanicStorage(n int, match StorageMatch) StorageHook {
	return nthStorage(n, match, func(context.Context, *StorageCall, func() error) error {
		panic("injected by a test")
	})
}

// nthStorage applies a hook to the n-th matching call alone.
func nthStorage(n int, match StorageMatch, hook StorageHook) StorageHook {
	var seen atomic.Int64
	return func(ctx context.Context, call *StorageCall, do func() error) error {
		if match(call) && seen.Add(1) == int64(n) {
			return hook(ctx, call, do)
		}
		return do()
	}
}
