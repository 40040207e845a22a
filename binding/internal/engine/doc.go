// Package engine runs one sync of a claim or a volume as a state machine. It starts no goroutine, reads no clock and
// does no I/O: binding.Controller does that for it, under a lock.
//
// A State remembers the objects that it has observed, the syncs that run, and the writes whose outcome is not known.
// Start begins the sync of a key and returns its first Step: an action to perform. Proceed takes the Reply to that action
// and returns the next Step, until one is Done. What to do is decided by package decision; the engine sees to the order
// of things:
//
//   - Two syncs never work on the same claim, volume or pair. The second ends and is run again after the first (B6).
//   - A write whose outcome is not known leaves its object in doubt. It is read before anything else is decided, and its
//     volume stays reserved until then (B6).
//   - A reply that contradicts what is known is believed once it is repeated (V3).
//   - From when the server went back in time until all is read anew, nothing is destroyed (W8).
//   - A volume is offered to one waiting claim after the other, never to all at once (W1).
//   - Events are published when they are news (N), and failures are retried later each time (W6).
//
// # Files
//
//   - engine.go: State, Step, Reply, Start and Proceed.
//   - sync.go: a sync from its begin to its end, what it locks, and how many hooks run at once.
//   - reply.go: what comes of a write and of a live read.
//   - restore.go: what is left to do after the server went back in time, and what waits for it.
//   - view.go: what a decision may know.
//   - store.go: the objects, and which of them refer to each other.
//   - wake.go: Observe and ObserveDeleted, and which keys a change of an object calls for.
//   - offers.go: which claim a volume is offered to.
//   - inspect.go: copies of a State and looks into it, for tests alone.
//
// The model checker in the folder model tries every order of steps in small clusters.
package engine
