package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
)

// kind is claims of a pod that differ in nothing but what they request. A volume that fits one fits every one that requests less.
// So they are assigned in one pass through the volumes from the smallest on, whose time is linear in the claims (S6, X9).
type kind struct {
	claims []*unboundClaim // from the one that requests least on
	urgent []*unboundClaim // from the one that requests most on

	// On the node at hand:
	choosing []*unboundClaim // those of claims that can have a free volume
	volumes  []index.Choice  // that they get, the best first
	found    []index.Choice
	free     []int // of each place in volumes, the first from there on that is not given away
}

// rivals are kinds that could have the same volumes.
type rivals struct {
	kinds  []*kind
	claims []*unboundClaim // of all kinds
}

const (
	// maxJointly is how many claims of several kinds are assigned together: that takes the square of them, or more.
	maxJointly = 32
	// maxLookUps is for how many volumes or claims the Index is kept from changing at a time.
	maxLookUps = 256
)

// maxPassed is how many volumes that other kinds have each kind passes over at most: all, unless there are many kinds.
func (r *rivals) maxPassed() int { return 64 + 16*len(r.claims)/len(r.kinds) }

// jointly reports whether the claims are assigned by a matching: else one kind after the other is.
func (r *rivals) jointly() bool { return len(r.kinds) > 1 && len(r.claims) <= maxJointly }

// kindKey is what the claims of a kind have in common.
type kindKey struct {
	modes    accessmode.Set
	selects  bool
	selector string // as its bytes
}

// rivalsOf sorts the claims by what volumes they could have: in order, for the result must not depend on chance. Of kinds the
// one that can have fewer volumes comes first: with a selector, then with more access modes.
func rivalsOf(claims []*unboundClaim) []*rivals {
	var all []*rivals
	groups, kinds := map[match.Group]*rivals{}, map[match.Group]map[kindKey]*kind{}
	for _, claim := range claims {
		group, key := claim.criteria.Group, kindKey{modes: claim.criteria.Modes}
		if selector := claim.Claim.Spec.Selector; selector != nil {
			encoded, _ := selector.Marshal() // which does not fail; String takes the square of its size
			key.selects, key.selector = true, string(encoded)
		}
		if groups[group] == nil {
			groups[group], kinds[group] = &rivals{}, map[kindKey]*kind{}
			all = append(all, groups[group])
		}
		of, rivals := kinds[group], groups[group]
		if of[key] == nil {
			of[key] = &kind{}
			rivals.kinds = append(rivals.kinds, of[key])
		}
		of[key].claims = append(of[key].claims, claim)
		rivals.claims = append(rivals.claims, claim)
	}
	for _, r := range all {
		slices.SortStableFunc(r.kinds, compareNarrowness)
		for _, k := range r.kinds {
			slices.SortFunc(k.claims, compareSize)
			k.urgent = slices.Clone(k.claims)
			slices.SortFunc(k.urgent, func(a, b *unboundClaim) int {
				return cmp.Or(quantities.Compare(b.criteria.Request, a.criteria.Request), cmp.Compare(a.Claim.Name, b.Claim.Name))
			})
		}
	}
	return all
}

func compareNarrowness(a, b *kind) int {
	selects := func(k *kind) int {
		if k.claims[0].Claim.Spec.Selector != nil {
			return 1
		}
		return 0
	}
	return cmp.Or(selects(b)-selects(a), accessmode.Compare(b.claims[0].criteria.Modes, a.claims[0].criteria.Modes))
}

// chooseIn finds what each claim gets that can have a free volume.
func (p *planner) chooseIn(r *rivals) {
	if r.jointly() {
		for _, claim := range r.claims {
			if claim.choosing {
				claim.candidates = claim.Best(len(r.claims), claim.candidates)
			}
		}
		p.assignment.assign(r.claims)
		return
	}
	clear(p.taken)
	for _, k := range r.kinds {
		k.choosing = k.choosing[:0]
		for _, claim := range k.claims {
			if claim.choosing {
				k.choosing = append(k.choosing, claim)
			}
		}
		p.take(k, r.maxPassed())
		k.serve()
		if len(r.kinds) > 1 {
			for _, choice := range k.volumes {
				p.taken[choice.Volume] = true
			}
		}
	}
}

// take finds the volumes that the claims get: from the best on, each that some claim can have in addition to those before. A
// claim can have all from the first on that is large enough for it, so that it is enough to count those that have none yet.
func (p *planner) take(k *kind, maxPassed int) {
	k.volumes = k.volumes[:0]
	var last index.Choice
	next, without := 0, 0
	for maxPassed >= 0 && (next < len(k.choosing) || without > 0) {
		count, from := min(without, maxLookUps), k.claims[0]
		if without == 0 {
			count, from = 1, k.choosing[next]
		}
		p.lookUp(k, count, from, last)
		for _, last = range k.found {
			for ; next < len(k.choosing) && k.choosing[next].fitsInto(last.Volume); next++ {
				k.choosing[next].best = last.Volume
				without++
			}
			if len(p.taken) > 0 && p.taken[last.Volume] {
				maxPassed--
				continue
			}
			k.volumes = append(k.volumes, last)
			without--
		}
		if len(k.found) < count {
			return
		}
	}
}

func (c *unboundClaim) fitsInto(volume *corev1.PersistentVolume) bool {
	return quantities.Compare(volume.Spec.Capacity[corev1.ResourceStorage], c.criteria.Request) >= 0
}

// lookUp finds the best volumes that are large enough for a claim of the kind, after the last one that was found.
func (p *planner) lookUp(k *kind, count int, from *unboundClaim, last index.Choice) {
	query := k.claims[0].Query
	if !p.held {
		p.index.Read(func(reader index.Reader) {
			reader.Renew(query)
			k.found = query.Next(count, from.criteria.Request, last, k.found)
		})
		return
	}
	if last.Volume == nil && from == k.claims[0] {
		k.found = query.Best(count, k.found)
		return
	}
	k.found = query.Next(count, from.criteria.Request, last, k.found)
}

// serve gives the volumes to the claims: all, or those that nothing can be provisioned for, and then those that request most, and
// of these the one that requests least gets the best.
func (k *kind) serve() {
	if len(k.volumes) < len(k.choosing) {
		k.chooseServed()
	}
	at := 0
	for _, claim := range k.choosing {
		if at < len(k.volumes) && (claim.served || len(k.volumes) == len(k.choosing)) {
			claim.assigned = k.volumes[at].Volume
			at++
		}
	}
	for i, claim := range k.choosing {
		claim.hasFirst = i < len(k.volumes)
	}
}

// chooseServed marks the claims that get a volume: from the most urgent on each that can get one in addition, which is given the
// smallest that is left.
func (k *kind) chooseServed() {
	k.free = k.free[:0]
	for i := range len(k.volumes) + 1 {
		k.free = append(k.free, i)
	}
	left := len(k.volumes)
	for _, blocked := range []bool{true, false} {
		for _, claim := range k.urgent {
			if left == 0 {
				return
			}
			if !claim.choosing || (claim.blocked != "") != blocked {
				continue
			}
			at, _ := slices.BinarySearchFunc(k.volumes, claim, func(choice index.Choice, claim *unboundClaim) int {
				return quantities.Compare(choice.Volume.Spec.Capacity[corev1.ResourceStorage], claim.criteria.Request)
			})
			if at = k.firstFree(at); at < len(k.volumes) {
				k.free[at] = at + 1
				claim.served = true
				left--
			}
		}
	}
}

// firstFree returns the first place from there on whose volume is not given away.
func (k *kind) firstFree(at int) int {
	for k.free[at] != at {
		k.free[at] = k.free[k.free[at]]
		at = k.free[at]
	}
	return at
}
