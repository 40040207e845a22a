// Pvextender answers kube-scheduler's requests about volumes, in place of its VolumeBinding plugin, which must be
// switched off in the scheduler's configuration:
//
//	pvextender --kubeconfig=$HOME/.kube/config --listen=127.0.0.1:8888
//	kube-scheduler --config=…    # as in the README
//
// It is package extender with what a program needs around it: TLS here; flags, logs and an orderly end by package program.
package main

import "github.com/pvbind/pvbind/examples/cluster/program"

func main() { pvextender(&options{}).Main() }

func pvextender(o *options) program.Program {
	return program.Program{Name: "pvextender", Usage: usage, Options: o}
}
