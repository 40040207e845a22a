// Package scheduling decides where a pod can have the volumes of its claims: which exist and are to be bound, which are to
// be provisioned, and why a node will not do.
//
// A claim whose class is WaitForFirstConsumer is bound while its pod is scheduled. PlanPod plans all claims of a pod on one
// node together, and PlanPodOnNodes does so for all nodes in one call. Both take a Request and return a Plan for each
// node; a Shape scores the plans that fit.
//
// A Plan is data: nothing is done yet. Assumptions keeps what was decided for one pod from being promised to the next,
// until it is written or given up. NextForPlan returns the next write of a plan, or that all is bound, or that the plan is
// to be given up and why, and package executor makes these writes; the rest of the binding is the Controller's. VolumesOf is for a kubelet: it
// returns which volumes of a pod may be mounted, and what the others wait for.
//
// The rules S1 to S10 are those of RULES.md in package binding.
//
// # Files
//
//   - plan.go has PlanPod and PlanPodOnNodes, what they are given (Request, View, Snapshot) and what they return (Plan,
//     Plans);
//   - shape.go has Shape, which scores a plan as kube-scheduler does;
//   - reason.go has the causes, and kube-scheduler's words for them;
//   - assume.go has Assumptions, and next.go NextForPlan;
//   - claims.go has VolumesOf, and which claims a pod names;
//   - planner.go plans one node after the other;
//   - checks.go finds which of the reasons kube-scheduler would say;
//   - migrated.go says on which nodes an in-tree volume can be used (CSINodeView);
//   - pools.go finds what can be provisioned from;
//   - kinds.go assigns volumes to claims that differ only in their request, and matching.go to others.
package scheduling
