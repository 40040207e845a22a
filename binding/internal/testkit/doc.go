// Package testkit has what the tests of several packages share. They import it with a dot, so that a test reads
//
//	claim := KnownClaim(Asking("5Gi"), BoundTo("a"))
//
// Objects begin as a pair that fits, FitClaim and FitVolume, or as that pair on a server, KnownClaim and KnownVolume; edits
// then change what a test is about.
//
//	claims.go, volumes.go   claims and volumes, and their edits
//	objects.go              classes, nodes, pods, attachments; names of annotations and finalizers
//	known.go                what a decision knows: snapshots, live reads, answers of hooks
//	errors.go               what a server or a hook fails with
//	copies.go               copies, and how to find out whether a shared object is modified (X6)
//	random.go               seeds, and random requests
//	variants.go             the clusters of benchmarks
//	upstream.go             what kube-controller-manager or kube-scheduler would choose
//	controller.go           a controller's calls made by hand, what it remembers, hooks that are functions
package testkit
