// Package extender answers kube-scheduler's requests about a pod's volumes over HTTP, in place of the scheduler's own
// VolumeBinding plugin, which must be switched off. Filter and prioritize look at all nodes at once; bind carries out
// the plan for the node that was chosen, waits until all claims of the pod are Bound, and then binds the pod.
//
//	cluster, err := extender.Watch(ctx, clientset)
//	…
//	server := &extender.Server{Cluster: cluster}
//	http.ListenAndServe("localhost:8888", server.Handler())
//
// The rest of a bind, from the volume's phase on, is that of whoever binds claims in the cluster: pvbinder or
// kube-controller-manager. Command pvextender is this package with flags, TLS and an orderly end.
//
// # Parts
//
// Cluster has the Executor of package clientgo: what informers have seen, what was assumed, and CarryOut, which makes the writes
// of a plan. All decisions are those of package scheduling: PlanPodOnNodes filters, Score compares, and PlanPod plans for the node
// that was chosen.
package extender
