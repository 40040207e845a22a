package executor

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/storageclass"
)

// Outcome is what to do with a pod whose plan was not carried out.
type Outcome string

const (
	// PlanAnew means that a claim or volume has changed since the plan was made, before it was carried out. Another plan for the
	// same node may do; if there is none, that says why.
	PlanAnew Outcome = "PlanAnew"
	// ScheduleElsewhere means that the pod cannot have its volumes on the node as things are. The scheduler should choose
	// again among all nodes. In a plugin of kube-scheduler the status is Error all the same: what it would wait for as Unschedulable
	// has happened already.
	ScheduleElsewhere Outcome = "ScheduleElsewhere"
	// Failed means that a write was rejected or undone (ErrNotStored), that the context has ended, that the pod is gone, or that a claim is malformed.
	// It says nothing about the node.
	Failed Outcome = "Failed"
)

// Error is why a plan was not carried out. Every error of CarryOut is one.
type Error struct {
	Outcome Outcome
	// Reasons are what has changed; none if Err says it.
	Reasons []scheduling.Reason
	// Err is what has failed; nil if Reasons say it.
	Err error
}

// ErrPodGone is the Err of a plan whose pod does not exist any more.
var ErrPodGone = errors.New("the pod does not exist any more")

// OutcomeOf returns the outcome in an error; Failed for one of somebody else, and "" for nil.
func OutcomeOf(err error) Outcome {
	var failure *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failure):
		return failure.Outcome
	}
	return Failed
}

// maxError is how long the reasons in an error may be, in bytes: it becomes an event of the pod.
const maxError = 1000

// Error says in one line what has changed or failed.
func (e *Error) Error() string {
	text := oneline.Text(oneline.Join(e.Reasons, "; ", scheduling.Reason.String), maxError)
	if e.Err != nil {
		text = e.Err.Error()
	}
	if e.Outcome == PlanAnew {
		return "something has changed since the plan was made: " + text
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func failed(err error) error { return &Error{Outcome: Failed, Err: err} }

// giveUp returns the error of a plan that has become impossible.
func (r *run) giveUp(reasons []scheduling.Reason) error {
	lasting := func(reason scheduling.Reason) bool { return !r.passing(reason) }
	if slices.ContainsFunc(reasons, lasting) {
		return &Error{Outcome: ScheduleElsewhere, Reasons: reasons}
	}
	return &Error{Outcome: PlanAnew, Reasons: reasons}
}

// passing reports whether another plan for the same node may do where this one does not: where the claim can have another
// volume, or has one already, or where it was only changed before its node was selected. But after a provision that has
// failed, a plan for the same node would fail again and again.
func (r *run) passing(reason scheduling.Reason) bool {
	switch reason.Cause {
	case scheduling.CauseVolumeTaken, scheduling.CauseVolumeAbsent, scheduling.CauseBoundElsewhere:
		return true
	case scheduling.CauseDeselected:
		return !r.selected[reason.Claim]
	}
	return false
}

// selectedBefore returns the claims that had a node when they were planned with.
func selectedBefore(plan scheduling.Plan) map[obj.Key]bool {
	selected := map[obj.Key]bool{}
	for _, p := range plan.Provisions {
		if hasNode(p.Claim) {
			selected[obj.KeyOf(p.Claim)] = true
		}
	}
	return selected
}

func hasNode(claim *corev1.PersistentVolumeClaim) bool {
	_, selected := claim.Annotations[storageclass.SelectedNodeAnnotation]
	return selected
}
