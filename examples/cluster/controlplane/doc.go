// Package controlplane runs a Kubernetes control plane for tests: etcd and kube-apiserver, and where a test needs
// them kube-controller-manager and kube-scheduler. They are processes on free ports of the loopback device that
// keep their data in a directory of the caller's. There are no nodes, and so no pod ever runs.
//
//	plane, err := controlplane.Start(t.TempDir())
//	…
//	defer plane.Stop()
//	client, err := kubernetes.NewForConfig(plane.Config())
//
// The binaries are those in KUBEBUILDER_ASSETS, as for envtest. Where that is not set, the script "build" beside
// this file builds them, which takes minutes the first time.
//
// It is made for tests: etcd does not flush to the disk, anybody on this machine can reach it, and tokens
// stand in a file. On Linux the processes end with the one that started them, whatever happens to it.
package controlplane
