// Pvbinder binds the claims and volumes of a cluster, in place of kube-controller-manager's
// persistentvolume-binder-controller, which must be switched off:
//
//	kube-controller-manager --controllers='*,-persistentvolume-binder-controller' …
//	pvbinder --kubeconfig=$HOME/.kube/config
//
// It is package clientgo's Runner with what a program in production needs around it: leader election, health and metrics
// here; flags, logs and an orderly end by package program.
package main

import "github.com/pvbind/pvbind/examples/cluster/program"

func main() { pvbinder(&options{}).Main() }

func pvbinder(o *options) program.Program {
	return program.Program{Name: "pvbinder", Usage: usage, Options: o}
}
