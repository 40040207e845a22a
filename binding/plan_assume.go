package binding

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
// node. It is given to PlanPod with each request. A pod that shares a claim with another gets by its plan what the
// other was promised, or is refused the node.
//
//	plan, err := binding.PlanPod(request, node)
//	…
//	assumption, ok := assumptions.Assume(index, plan)
//	if !ok {
//		// somebody was faster: plan again
//	}
//	defer assumption.Revert()
//	// do what NextForPlan says, until it says Nothing or GiveUp
//
// The zero value is empty and ready to use. Any number of goroutines may use it at once. All that is assumed of
// one Index has to be in one Assumptions.
type Assumptions struct {
	mutex  sync.Mutex
	claims map[obj.Key]*assumedClaim
}

// assumedClaim is what was assumed for a claim: a volume, or else a node to provision for. Pods may share it.
type assumedClaim struct {
	uid      types.UID
	volume   string
	node     string
	reserved bool // by us
	pods     int
}

// Assumption is what was assumed for one pod.
type Assumption struct {
	from  *Assumptions
	index *index.Index
	keys  []obj.Key
	done  bool
}

// Assume reserves the volumes of a plan and remembers which claims are to be provisioned for its node, all or
// nothing. False means that nothing was assumed: a volume has changed or has gone to another claim since, or a
// claim was assumed to get another volume or node. Then it is time to plan again. A plan that does not fit is
// never assumed.
func (a *Assumptions) Assume(index *index.Index, plan PodPlan) (*Assumption, bool) {
	if !plan.Fits() {
		return nil, false
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	wanted := assumedFor(plan)
	for key, claim := range wanted {
		if known := a.claims[key]; known != nil && !known.like(claim) {
			return nil, false
		}
	}
	taken, ok := index.ReserveAll(plan.Bindings)
	if !ok {
		return nil, false
	}
	assumption := &Assumption{from: a, index: index}
	for key, claim := range wanted {
		claim.reserved = taken[claim.volume]
		a.add(key, claim)
		assumption.keys = append(assumption.keys, key)
	}
	return assumption, true
}

func assumedFor(plan PodPlan) map[obj.Key]assumedClaim {
	wanted := map[obj.Key]assumedClaim{}
	for _, b := range plan.Bindings {
		wanted[obj.KeyOf(b.Claim)] = assumedClaim{uid: b.Claim.UID, volume: b.Volume.Name}
	}
	for _, p := range plan.Provisions {
		wanted[obj.KeyOf(p.Claim)] = assumedClaim{uid: p.Claim.UID, node: plan.Node.Name}
	}
	return wanted
}

func (c *assumedClaim) like(other assumedClaim) bool {
	return c.uid == other.uid && c.volume == other.volume && c.node == other.node
}

func (a *Assumptions) add(key obj.Key, claim assumedClaim) {
	known := a.claims[key]
	if known == nil {
		known = &claim
		zeromap.Put(&a.claims, key, known)
	}
	known.reserved = known.reserved || claim.reserved
	known.pods++
}

// Revert ends the assumption, whatever became of the pod: call it when the plan is given up, and when all is
// bound. It gives back what the assumption took and nobody else assumes; a second call does nothing. What was
// written stays written (S8), so the Index must have been told of the server's replies before: a volume that
// it does not know to be the claim's is free again.
func (s *Assumption) Revert() {
	s.from.mutex.Lock()
	defer s.from.mutex.Unlock()
	if s.done {
		return
	}
	s.done = true
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
}

// promised is what is assumed for the claim: the volume that it gets, or the node that one is made for.
func (a *Assumptions) promised(claim *corev1.PersistentVolumeClaim) (volume, node string) {
	if a == nil {
		return "", ""
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.claims[obj.KeyOf(claim)]
	if known == nil || known.uid != claim.UID {
		return "", ""
	}
	return known.volume, known.node
}
