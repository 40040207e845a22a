// Package scenario runs scenario files: text in which volumes and claims are tables, what is done are commands, and every
// call that a controller makes of it stands below the command, one line each.
//
//	# C1, B1-B4: the smallest volume that fits is bound.
//
//	PV     CAPACITY
//	data   1Gi
//
//	PVC            REQUEST
//	default/data   1Gi
//
//	> settle
//	  update pv/data: spec.claimRef={default/data uid-2} +annotation pv.kubernetes.io/bound-by-controller
//	  …
//
// The files are in testdata; README.md there explains how to read and write one. A Runner carries a file out: it holds a
// server and the controllers on it, and checks what must hold in every scenario, whatever its file says.
//
//	script.go      a file taken apart, and run
//	table.go       tables: kinds, rows, cells; columns.go what each column stands for
//	runner.go      Runner: the server, the controllers, what they did
//	commands.go    the commands
//	faults.go      what goes wrong with a call; hooks.go the hooks and the storage behind them
//	steps.go       controllers that take single steps, as the model checker writes them down
//	invariants.go  what must hold
//
// Run the files, or rewrite what they expect after a change that is meant:
//
//	go test ./binding/internal/scenario
//	go test ./binding/internal/scenario -update
package scenario
