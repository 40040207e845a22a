package dump

import (
	"runtime"
	"sync"
)

// batch is how many things a worker takes at a time.
const batch = 256

// inParallel does something with each of many things, on all processors, and returns the outcomes in order.
func inParallel[T, R any](things []T, do func(T) R, progress Progress) []R {
	outcomes := make([]R, len(things))
	var mutex sync.Mutex
	var taken, done int
	take := func(finished int) (from, to int) {
		mutex.Lock()
		defer mutex.Unlock()
		done += finished
		if progress != nil && finished > 0 {
			progress(done, len(things))
		}
		from = taken
		taken = min(taken+batch, len(things))
		return from, taken
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for from, to := take(0); from < to; from, to = take(to - from) {
				for i := from; i < to; i++ {
					outcomes[i] = do(things[i])
				}
			}
		})
	}
	workers.Wait()
	return outcomes
}
