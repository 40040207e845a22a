// Package model checks the engine by trying everything that can happen in small worlds.
//
// A world has a few volumes, claims, classes and pods, one or two controllers, and bounds: so many actions of people and so
// many faults. TestModel starts at the first state of each world, takes every move that there is in it, goes on from
// every state that this leads to, and stops when no new state is left. What decides is the shipped engine, on copies of
// its state; the API server and the storage are small ones of the model's own. Each move, and each state in which the
// controllers have nothing left to do, is judged by the rules.
//
// All of it is test code:
//
//	model_test.go        TestModel, a world made ready, its first state
//	worlds_test.go       the worlds; troubled_worlds_test.go those of trouble
//	trouble_test.go      which trouble has met which destructive step
//	travel_test.go       a backup of the server, and a restore
//	state_test.go        a state of the world, its controllers, the versions of its objects
//	moves_test.go        what can happen in a state, and the state after it
//	actions_test.go      what people, provisioners and schedulers do
//	search_test.go       the search: states found, the frontier of those still to be expanded
//	cycle_test.go        whether the controllers come to an end from every state, and within how many writes
//	fingerprint_test.go  which states are the same
//	invariants_test.go   what must hold
//	server_test.go       the API server; storage_test.go the storage
//	comparison_test.go   holds both to those of package bindingtest
//	scenario_test.go     writes a counterexample down as a scenario file
//	sabotage_test.go     breaks the engine on purpose, to see that it is noticed
//
// Run it:
//
//	go test ./binding/internal/engine/model -run '^TestModel$' -v
//	PVBIND_MODE=full go test ./binding/internal/engine/model -run '^TestModel$' -v
//	PVBIND_MODE=long GOMEMLIMIT=16GiB go test ./binding/internal/engine/model -run '^TestModel$' -v -timeout 6h
package model
