package extender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// carryOut makes the writes of a plan and waits until all its claims are bound. It gives up when the plan has become
// impossible, when the context ends, or when the pod does not exist any more.
func (s *Server) carryOut(ctx context.Context, plan scheduling.Plan, stillExists func() error) error {
	for {
		changed := s.Cluster.changed()
		if err := stillExists(); err != nil {
			return err
		}
		step, err := scheduling.NextForPlan(plan, s.Cluster)
		if err != nil {
			return err
		}
		switch step.Kind {
		case decision.Nothing:
			return nil
		case decision.UpdateVolume, decision.UpdateClaim:
			err = s.write(ctx, step.Action)
		case decision.Wait:
			err = await(ctx, changed, step.Why)
		default:
			err = giveUpError(step.Reasons)
		}
		if err != nil {
			return err
		}
	}
}

// giveUpError returns the error of a plan that is given up. If only volumes were changed, another plan for the node may do; but
// where a provision has failed, the scheduler should choose again.
func giveUpError(reasons []scheduling.Reason) error {
	if slices.ContainsFunc(reasons, func(r scheduling.Reason) bool { return r.Cause != scheduling.CauseVolumeTaken }) {
		return reasonsError(reasons)
	}
	return errors.Join(errOutdated, reasonsError(reasons))
}

func await(ctx context.Context, changed <-chan struct{}, why string) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", why, context.Cause(ctx))
	}
}

// write makes one write. After one that failed the object is read, for it may have been written all the same (B6): what
// was reserved for the pod is released only when the outcome is known.
func (s *Server) write(ctx context.Context, action decision.Action) error {
	var written obj.Object
	var err error
	era := s.Cluster.era()
	if action.Kind == decision.UpdateVolume {
		written, err = s.client().UpdateVolume(ctx, action.Volume)
	} else {
		written, err = s.client().UpdateClaim(ctx, action.Claim)
	}
	if err == nil {
		s.Cluster.wrote(written, era)
		return nil
	}
	s.reread(ctx, action)
	if apierrors.IsConflict(err) {
		return errOutdated
	}
	return fmt.Errorf("%s: %w", action.Why, err)
}

// rereadTimeout bounds the read after a failed write, which is made even if the request has ended.
const rereadTimeout = 5 * time.Second

func (s *Server) reread(ctx context.Context, action decision.Action) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTimeout)
	defer cancel()
	var found obj.Object
	var err error
	era := s.Cluster.era()
	if action.Kind == decision.UpdateVolume {
		found, err = s.client().GetVolume(ctx, action.Volume.Name)
	} else {
		found, err = s.client().GetClaim(ctx, action.Claim.Namespace, action.Claim.Name)
	}
	if err == nil {
		s.Cluster.wrote(found, era)
	}
}
