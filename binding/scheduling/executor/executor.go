package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// Client makes the writes of a plan. Every binding.Client is one, and what that says of errors and of updates holds here.
type Client interface {
	// GetVolume and GetClaim read from the server itself, never from a cache. They are called after a failed write only.
	GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// UpdateVolume and UpdateClaim write metadata and spec on the resourceVersion that the object carries, and return what
	// the server stored.
	UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error)
}

// Executor carries out plans. It keeps the newest version of every claim and volume, from whoever reports changes and from the
// replies to its own writes, and what was assumed for pods whose claims are not bound yet. Client must be set before CarryOut,
// and no field may change after that. It is safe for concurrent use.
type Executor struct {
	Client Client
	// PodGone reports whether it is certain that the pod of that UID does not exist any more; what cannot be found out is not.
	// It is called while a plan is carried out, at every change of what the plan depends on, and so should look into a
	// cache first. Nil: whoever calls CarryOut ends the context when the pod is gone.
	PodGone func(ctx context.Context, pod obj.Key, uid types.UID) bool
	// CSINodeOf looks up the CSINode of a node; nil if it is not known. Nil: in-tree volumes are taken for not migrated.
	CSINodeOf func(node string) *storagev1.CSINode

	index   index.Index
	assumed scheduling.Assumptions

	mutex    sync.RWMutex
	known    map[obj.Key]known
	restores int // how often the server went back in time
	waiters  map[obj.Key]map[*waiter]bool
}

var (
	_ scheduling.ObjectView  = (*Executor)(nil)
	_ scheduling.CSINodeView = (*Executor)(nil)
)

// Request returns a request for a plan of the pod, with the volumes to choose from and what was assumed. The view is one that
// looks up claims and volumes in the Executor.
func (e *Executor) Request(pod *corev1.Pod, view scheduling.View) scheduling.Request {
	return scheduling.Request{Pod: pod, View: view, Index: &e.index, Assumptions: &e.assumed}
}

// Assume keeps what is planned for the pod from others, until the assumption is carried out or reverted: see
// scheduling.Assumptions. False means that nothing was assumed, and that the pod is to be planned again.
func (e *Executor) Assume(plan scheduling.Plan) (*scheduling.Assumption, bool) {
	return e.assumed.Assume(&e.index, plan)
}

// attempts bounds how often BindVolumes plans for the node because somebody else was faster.
const attempts = 5

// BindVolumes gets the pod of a request its volumes on a node, and returns nil once all of its claims are bound. It carries out
// what was assumed for the pod or, where that is nil, plans and assumes; and for as long as the outcome is PlanAnew it plans anew
// for the same node, five times at most. Errors are those of CarryOut. Where there is no plan, the outcome is ScheduleElsewhere.
func (e *Executor) BindVolumes(ctx context.Context, request scheduling.Request, node *corev1.Node, assumed *scheduling.Assumption) (err error) {
	for range attempts {
		if assumed == nil {
			assumed, err = e.planned(request, node)
		}
		if assumed != nil {
			err = e.CarryOut(ctx, assumed)
		}
		if OutcomeOf(err) != PlanAnew {
			return err
		}
		assumed = nil
	}
	return err
}

// planned returns what was planned and assumed.
func (e *Executor) planned(request scheduling.Request, node *corev1.Node) (*scheduling.Assumption, error) {
	plan, err := scheduling.PlanPod(request, node)
	var absent *scheduling.AbsentError
	switch {
	case errors.As(err, &absent):
		return nil, &Error{Outcome: ScheduleElsewhere, Err: err}
	case err != nil:
		return nil, failed(err)
	case !plan.Fits():
		return nil, &Error{Outcome: ScheduleElsewhere, Reasons: slices.Concat(plan.Refused, plan.Reasons)}
	}
	assumption, ok := e.Assume(plan)
	if !ok {
		return nil, &Error{Outcome: PlanAnew, Err: errors.New("another pod was faster")}
	}
	return assumption, nil
}

// CarryOut makes the writes of an assumed plan, and returns nil once all claims of the pod are bound: they name their volume and
// carry bind-completed, and status and phase follow. That is done by whoever binds claims in the cluster. Every error is an *Error,
// whose Outcome says how to go on. A context that ends is one; what was written by then stays.
//
// It ends the assumption in any case: what was assumed is written by then, or given up. To revert it once more does nothing.
//
// One write is made at a time. After one that fails the object is read, for it may have been written all the same (B6): if so,
// CarryOut goes on. That read has five seconds, even if the context has ended.
func (e *Executor) CarryOut(ctx context.Context, assumption *scheduling.Assumption) error {
	defer assumption.Revert()
	r := run{Executor: e, plan: assumption.Plan(), waiter: newWaiter()}
	r.selected = selectedBefore(r.plan)
	defer e.leave(r.waiter)
	for {
		if bound, err := r.next(ctx); bound || err != nil {
			return err
		}
	}
}

// run is one plan on its way.
type run struct {
	*Executor
	*waiter
	plan     scheduling.Plan
	selected map[obj.Key]bool // claims that had their node at some time, so that one without it was deselected
}

// next does what comes next for the plan, and reports whether that is nothing, because all is bound.
func (r *run) next(ctx context.Context) (bound bool, err error) {
	r.watch(r.waiter, r.dependencies()) // before looking: what changes after that wakes it
	if r.PodGone != nil && r.PodGone(ctx, r.plan.Pod, r.plan.PodUID) {
		return false, failed(ErrPodGone)
	}
	step, err := scheduling.NextForPlan(r.plan, r)
	if err != nil {
		return false, failed(err)
	}
	switch step.Kind {
	case decision.Nothing:
		return true, nil
	case decision.UpdateVolume, decision.UpdateClaim:
		return false, r.write(ctx, step.Action)
	case decision.Wait:
		return false, r.await(ctx, step.Why)
	}
	return false, r.giveUp(step.Reasons)
}

// dependencies returns the pod, its claims, and the volumes that these are to have or name. A volume that is provisioned is
// known by name only once its claim names it, which is a change of the claim.
func (r *run) dependencies() []obj.Key {
	keys := []obj.Key{r.plan.Pod}
	for _, b := range r.plan.Bindings {
		keys = append(keys, obj.KeyOf(b.Claim), obj.VolumeKey(b.Volume.Name))
	}
	for _, p := range r.plan.Provisions {
		keys = append(keys, obj.KeyOf(p.Claim))
		if claim, _ := r.Claim(p.Claim.Namespace, p.Claim.Name); claim != nil && claim.Spec.VolumeName != "" {
			keys = append(keys, obj.NamedVolume(claim))
		}
	}
	return keys
}

// await blocks until something has changed that the plan depends on.
func (r *run) await(ctx context.Context, why string) error {
	select {
	case <-r.changed:
		return nil
	case <-ctx.Done():
		return failed(fmt.Errorf("%s: %w", why, context.Cause(ctx)))
	}
}
