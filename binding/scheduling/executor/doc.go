// Package executor carries out the plans of package scheduling: it makes the writes of a plan, waits until all claims of the pod
// are bound, and says in a typed error what to do where that cannot be.
//
// A scheduler gives one Executor a Client, and reports to it every change of claims and volumes. The adapters
// binding/clientgo and binding/controllerruntime do both, and look up what else a plan depends on. For each pod it then goes
//
//	plan, err := scheduling.PlanPod(volumes.Request(pod), node)
//	…
//	assumption, ok := volumes.Assume(plan) // no other pod gets the same; nothing is written
//	…
//	err = volumes.BindVolumes(ctx, pod, node, assumption)
//
// BindVolumes makes the writes, and plans anew for the node where somebody else was faster. CarryOut is one plan's part of that.
//
// Plugins of kube-scheduler assume in Reserve, bind in PreBind with a context that ends after the bind timeout, and revert the
// assumption in Unreserve. What an error means for the pod is its Outcome:
//
//   - PlanAnew: somebody else was faster, of BindVolumes five times in a row; another plan for the same node may do;
//   - ScheduleElsewhere: the pod cannot have its volumes on the node, and the scheduler should choose again, for instance because
//     the volume could not be provisioned for the node;
//   - Failed: a write was rejected or undone, the context has ended, or the pod is gone.
//
// # What is left behind
//
// What was written is never taken back, whether the plan fails or the process dies between two writes: a pre-bound volume is the
// claim's, and a claim with a selected node is provisioned for. The next plan for the pod takes that up. What was assumed
// ends with CarryOut, with Revert, or with the process.
//
// # Parts
//
// executor.go has the Executor and the way of a plan through it, write.go one write and the read after one that failed, known.go
// what is known of claims and volumes, waiter.go how a change wakes the plans that depend on it, error.go the outcomes.
package executor
