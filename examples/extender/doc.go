// Package extender answers kube-scheduler's questions about a pod's volumes over HTTP, in place of the scheduler's own
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
// # Its parts
//
// Cluster is what informers know, kept as an index.Index and a binding.PodView; a write's reply counts at once. All
// deciding is package binding's: PlanPodOnNodes filters, Score compares, PlanPod and Assumptions.Assume promise the
// volumes to the pod, and NextForPlan says what to write.
package extender
