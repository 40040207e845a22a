// Package history plays random histories: people, faults and one or two controllers at work on one server, step by step.
//
// Between any two steps of a controller anything else may happen: somebody edits a volume, a cache hears of a change late, a
// call fails or arrives after its sender has given up, a controller restarts. A History is decided by its seed, so that a
// failure can be replayed. Every write is judged in the moment in which it takes effect, and what there is once all has
// settled is judged as a whole (rules X1 to X8).
//
//	history.go     History and its steps: what happens next, what becomes of a call
//	controller.go  Controller: the engine of one, what it was told, what is due
//	people.go      what people, schedulers and provisioners do
//	invariants.go  what must hold
//
// Directed makes a history in which nothing is random. Package scenario uses it to take single steps, and the model checker to
// judge its settled states.
//
// The tests play more than plain histories: people who do what the library tells them (advice), who repair pairs, who use the
// operations of package reclaim, and one claim or one transfer through every fault at every call.
//
//	go test ./binding/internal/history -run '^TestHistories$'
//	PVBIND_SEED=7 go test ./binding/internal/history -run '^TestHistories$' -v    # replays one
//	PVBIND_MODE=full go test ./binding/internal/history                           # as many as in CI
//	PVBIND_MODE=long go test ./binding/internal/history -timeout 6h               # many more
package history
