package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// checks are the claims of a pod in the order in which kube-scheduler looks at them. It stops at the first of those that are
// bound whose volume the node cannot use, and at the first of the others that gets nothing, and says why of these two alone
// (S9). A plan has the reasons of all claims, and another set of claims may be without a volume in it, for they are assigned
// together (S6). That kube-scheduler finds something for each where the plan does not cannot be.
type checks struct {
	bound   []*boundClaim
	unbound []*unboundClaim
	taken   map[*corev1.PersistentVolume]bool // kept for the next node
}

// checksOf takes the claims in the order in which the pod names them. Of those that are not bound, kube-scheduler looks at
// the ones with a selected node first, and then at the one that requests least.
func checksOf(bound []*boundClaim, unbound []*unboundClaim) checks {
	c := checks{bound: slices.Clone(bound), unbound: slices.Clone(unbound)}
	slices.SortStableFunc(c.unbound, func(a, b *unboundClaim) int {
		switch {
		case a.hasSelected && b.hasSelected:
			return 0
		case a.hasSelected:
			return -1
		case b.hasSelected:
			return 1
		}
		return quantities.Compare(a.criteria.Request, b.criteria.Request)
	})
	return c
}

// firstBound returns why the first of the claims that are bound cannot have its volume; "" if all can.
func (c *checks) firstBound() Cause {
	if at := slices.IndexFunc(c.bound, func(claim *boundClaim) bool { return claim.failed }); at >= 0 {
		return c.bound[at].reason.Cause
	}
	return ""
}

// firstUnbound returns why the first of the other claims gets nothing, if each takes the best volume that is left; "" if all
// get something. Claims of one kind get the volumes of the plan, those first that request least. Of others the candidates are
// enough: each has as many as there are claims.
func (c *checks) firstUnbound() Cause {
	if c.taken == nil {
		c.taken = map[*corev1.PersistentVolume]bool{}
	}
	clear(c.taken)
	for _, claim := range c.unbound {
		if claim.gets(c.taken) {
			continue
		}
		if claim.blocked != "" {
			return claim.blocked
		}
	}
	return ""
}

// gets reports whether the claim gets the volume that is pre-bound to it, or the best that is not taken, and takes that.
func (c *unboundClaim) gets(taken map[*corev1.PersistentVolume]bool) bool {
	if len(c.candidates) == 0 {
		return c.hasFirst || !c.choosing && c.assigned != nil
	}
	for _, candidate := range c.candidates {
		if !taken[candidate.Volume] {
			taken[candidate.Volume] = true
			return true
		}
	}
	return false
}
