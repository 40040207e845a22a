// Package schedulerplugin is a plugin of kube-scheduler that takes the place of VolumeBinding. It plans all claims of a pod
// together, on all nodes at once, and gets the pod its volumes on the node that was chosen.
//
// It is compiled into a kube-scheduler, whose main then is
//
//	command := app.NewSchedulerCommand(app.WithPlugin(schedulerplugin.Name, schedulerplugin.New)) // of k8s.io/kubernetes/cmd/kube-scheduler/app
//	os.Exit(cli.Run(command))                                                                   // of k8s.io/component-base/cli
//
// and which is told, in the file that its --config names, to use it in place of VolumeBinding. Two that bind volumes would get in each
// other's way:
//
//	apiVersion: kubescheduler.config.k8s.io/v1
//	kind: KubeSchedulerConfiguration
//	profiles:
//	- schedulerName: default-scheduler
//	  plugins:
//	    multiPoint:
//	      enabled: [{name: PVBind}]
//	      disabled: [{name: VolumeBinding}]
//	  pluginConfig: # may be left out
//	  - name: PVBind
//	    args:
//	      bindTimeoutSeconds: 600
//
// A plugin that is enabled so comes after all others, and where several reject a pod the first is heard. The profile.yaml of examples/scheduler
// puts it in the very place of VolumeBinding, so that whole messages are the same, letter for letter. That directory is such a
// kube-scheduler, with the go.mod that it needs.
//
// Whoever binds claims in the cluster goes on doing so: kube-controller-manager, or pvbinder in its place. The rights that
// kube-scheduler has suffice.
//
// # Arguments
//
// They are those of VolumeBinding, and so are their defaults.
//
// bindTimeoutSeconds is how long a pod may take to get its volumes once its node is chosen: 600 unless given. With 0 it does not wait:
// it has a second for its writes, and is tried again until its claims are bound.
//
// shape says which nodes are preferred, by how much of their storage is used: see scheduling.Shape. Without one, nodes are not
// scored, but where the feature gate StorageCapacityScoring is on, as it is by default from 1.37 on, they are by
// scheduling.DefaultShape. Unlike VolumeBinding it takes a shape whether that gate is on or not.
//
// # What happens to a pod
//
//   - PreFilter plans the pod on all nodes, and rejects it where it must wait whatever the node. It skips a pod without claims, and then
//     no other extension point has anything to do.
//   - Filter looks up the plan of a node. A node that cannot be used gets kube-scheduler's reasons, letter for letter. Preemption
//     changes no plan, and so there are no PreFilterExtensions.
//   - PreScore and Score score the plans by the shape.
//   - Reserve assumes the plan of the chosen node, so that no other pod gets the same, and Unreserve reverts that. Neither writes anything:
//     the pod-group cycle calls both to simulate. If a volume was taken since the plan was made, Reserve plans anew for the node.
//   - PreBind makes the writes, and waits until all claims are bound. If it fails the pod is tried again after its back-off, as with
//     VolumeBinding: what made it fail has happened already, so there may be no event to wait for.
//
// A pod that was rejected is tried again when an event of the cluster may help it: EventsToRegister. It heeds more of them than
// VolumeBinding does, for instance that another pod gives up the volumes assumed for it; and of each kind only those that concern
// the claims of the pod, where VolumeBinding tries every pod at every change of any volume.
//
// # Parts
//
// plugin.go has the Plugin and its New, args.go its arguments, filter.go, score.go and reserve.go the extension points, state.go
// what is kept of a pod from one to the next, refusal.go kube-scheduler's words for a pod that must wait, events.go what makes a
// rejected pod be tried again.
package schedulerplugin
