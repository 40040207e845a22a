package scheduling

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// Assumptions remembers what was decided for pods whose volumes are not bound yet, so that no other pod is
// promised the same: volumes are reserved in the Index, and claims that are to be provisioned for keep their
// node. It is a part of each Request. A pod that shares a claim with another is planned with the same volume or
// node for it, or the node is rejected.
//
//	plan, err := scheduling.PlanPod(request, node)
//	…
//	assumption, ok := assumptions.Assume(index, plan)
//	if !ok {
//		// somebody was faster: plan again
//	}
//	defer assumption.Revert()
//	// carry out what NextForPlan returns, until it returns Nothing or GiveUp: package executor does that
//
// The zero value is empty and ready to use. Any number of goroutines may use it at once. All that is assumed of
// one Index has to be in one Assumptions.
type Assumptions struct {
	mutex  sync.Mutex
	claims map[obj.Key]*assumedClaim

	topologies topologies
}

// promise is what was assumed for a claim: a volume, or else a node to provision for.
type promise struct {
	claim  types.UID
	volume string
	node   string
}

// assumedClaim is a claim with a promise, which pods may share.
type assumedClaim struct {
	promise
	reserved bool // by these Assumptions, so that Revert releases it
	pods     int
}

// Assumption is what was assumed for one pod.
type Assumption struct {
	plan  Plan
	from  *Assumptions
	index *index.Index
	keys  []obj.Key // none once it is reverted
}

// Plan returns what was assumed.
func (s *Assumption) Plan() Plan { return s.plan }

// Assume reserves the volumes of a plan and remembers which claims are to be provisioned for its node, all or
// nothing. False means that nothing was assumed, and that the pod is to be planned again: a volume has changed or has gone to
// another claim since, or a claim was assumed to get another volume or node. A plan that does not fit is never assumed.
func (a *Assumptions) Assume(index *index.Index, plan Plan) (*Assumption, bool) {
	if !plan.Fits() {
		return nil, false
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	promises := promisesOf(plan)
	for key, promise := range promises {
		if known := a.claims[key]; known != nil && known.promise != promise {
			return nil, false
		}
	}
	reserved, ok := index.ReserveAll(plan.Bindings)
	if !ok {
		return nil, false
	}
	assumption := &Assumption{plan: plan, from: a, index: index}
	for key, promise := range promises {
		if a.claims[key] == nil {
			zeromap.Put(&a.claims, key, &assumedClaim{promise: promise})
		}
		claim := a.claims[key]
		claim.reserved = claim.reserved || reserved[promise.volume]
		claim.pods++
		assumption.keys = append(assumption.keys, key)
	}
	return assumption, true
}

func promisesOf(plan Plan) map[obj.Key]promise {
	promises := map[obj.Key]promise{}
	for _, b := range plan.Bindings {
		promises[obj.KeyOf(b.Claim)] = promise{claim: b.Claim.UID, volume: b.Volume.Name}
	}
	for _, p := range plan.Provisions {
		promises[obj.KeyOf(p.Claim)] = promise{claim: p.Claim.UID, node: plan.Node.Name}
	}
	return promises
}

// Revert ends the assumption, whatever became of the pod: call it when the plan is given up, and when all is
// bound. It releases what the assumption reserved and no other assumption needs; a second call does nothing. Update
// the Index with the server's replies first, or a volume that was bound is offered again (S8).
func (s *Assumption) Revert() {
	s.from.mutex.Lock()
	defer s.from.mutex.Unlock()
	for _, key := range s.keys {
		claim := s.from.claims[key]
		if claim.pods--; claim.pods > 0 {
			continue
		}
		delete(s.from.claims, key)
		if claim.reserved {
			s.index.Release(claim.volume, key)
		}
	}
	s.keys = nil
}

// promised returns what is assumed for the claim: the volume that it gets, or the node that one is provisioned for.
func (a *Assumptions) promised(claim *corev1.PersistentVolumeClaim) (volume, node string) {
	if a == nil {
		return "", ""
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if known := a.claims[obj.KeyOf(claim)]; known != nil && known.claim == claim.UID {
		return known.volume, known.node
	}
	return "", ""
}
