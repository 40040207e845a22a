package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// planner plans a pod for one node after the other. The pod's claims are looked up once for all nodes.
type planner struct {
	pod        obj.Key
	podUID     types.UID
	refused    []Reason        // why the pod must wait whatever the node
	bound      []*boundClaim   // in the order of their names
	unbound    []*unboundClaim // in the order of their names
	checks     checks
	rivals     []*rivals
	sources    []*source
	index      *index.Index
	held       bool // the Index does not change
	summarizes int  // so many reasons of a node say what became of the volumes (E2)
	maxReasons int  // of a node

	// Kept for the next node:
	assignment assignment
	taken      map[*corev1.PersistentVolume]bool
	bindings   shared[index.Binding]
	provisions shared[Provision]
	reasons    shared[Reason]
}

// boundClaim is a claim whose volume must be usable on the node (S3).
type boundClaim struct {
	exists bool
	usability
	reason Reason // reported if the volume is not usable on the node
	failed bool   // it is not, on the node at hand
}

// unboundClaim is a claim that a volume is to be found or provisioned for (S4), and what it can have on the node at hand.
type unboundClaim struct {
	*index.Query
	criteria match.Criteria
	class    *storagev1.StorageClass
	// selected is the node that its volume is being provisioned for, if hasSelected is set.
	selected    string
	hasSelected bool
	// promised is the volume that the plan of another pod assumes for it.
	promised string
	source   *source // of what is provisioned
	related  bool    // volumes may be pre-bound to it
	detail   detail
	option
}

// option is what a claim can have on a node.
type option struct {
	choosing   bool                     // it can have a free volume: none is pre-bound to it
	best       *corev1.PersistentVolume // the best of the free volumes that fit; nil if there is none
	candidates []index.Choice           // the best first, where claims of several kinds are assigned together
	hasFirst   bool                     // it gets a volume where each takes the best that is left: see checks
	served     bool                     // it is one of those that get a volume: see kind
	assigned   *corev1.PersistentVolume // the one that is pre-bound, or one of the candidates: see assignment
	elsewhere  string                   // the name of a volume that is pre-bound to the claim and not usable on the node
	blocked    Cause                    // why no volume can be provisioned; empty if one can
	pool       *storagev1.CSIStorageCapacity
}

// newPlanner looks up the claims of the request's pod.
func newPlanner(request Request) (*planner, error) {
	claims, err := claimsNamedBy(request.Pod, request.View)
	if err != nil {
		return nil, err
	}
	p := &planner{pod: obj.KeyOfPod(request.Pod), podUID: request.Pod.UID, index: request.Index}
	if p.index == nil {
		p.index = &index.Index{}
	}
	for _, claim := range claims {
		if err := p.add(claim, request); err != nil {
			return nil, err
		}
	}
	p.checks = checksOf(p.bound, p.unbound)
	slices.SortFunc(p.refused, func(a, b Reason) int { return cmp.Compare(a.Claim.Name, b.Claim.Name) })
	slices.SortFunc(p.bound, func(a, b *boundClaim) int { return cmp.Compare(a.reason.Claim.Name, b.reason.Claim.Name) })
	slices.SortFunc(p.unbound, func(a, b *unboundClaim) int { return cmp.Compare(a.criteria.Claim.Name, b.criteria.Claim.Name) })
	p.addSources(request)
	p.beginQueries()
	p.rivals, p.taken = rivalsOf(p.unbound), map[*corev1.PersistentVolume]bool{}
	return p, nil
}

// add adds a claim of the pod. It has to be usable, and bound unless it waits for the node (S1, S2).
func (p *planner) add(claim *corev1.PersistentVolumeClaim, request Request) error {
	if reason := unusable(claim); reason.Cause != "" {
		p.refused = append(p.refused, reason)
		return nil
	}
	if fullyBound(claim) {
		p.bound = append(p.bound, newBoundClaim(claim, request.View))
		return nil
	}
	class := request.View.Class(storageclass.OfClaim(claim))
	waits, err := storageclass.WaitsForFirstConsumer(class)
	if err != nil {
		return err
	}
	if !waits || claim.Spec.VolumeName != "" {
		p.refused = append(p.refused, notBound(claim, class))
		return nil
	}
	unbound, err := newUnboundClaim(claim, class, request)
	p.unbound = append(p.unbound, unbound)
	return err
}

// notBound returns why the pod must wait until the claim is bound, whatever the node.
func notBound(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) Reason {
	detail := "the claim is to be bound without regard to the node, and is not yet bound"
	name := storageclass.OfClaim(claim)
	switch {
	case claim.Spec.VolumeName != "":
		detail = "the claim names a volume and is not yet bound to it"
	case class == nil && name != "":
		detail = "the claim is not bound, and its class " + name + " does not exist"
	}
	return Reason{CauseClaimUnbound, obj.KeyOf(claim), claim.Spec.VolumeName, detail}
}

func newBoundClaim(claim *corev1.PersistentVolumeClaim, view ObjectView) *boundClaim {
	volume, _ := view.Volume(claim.Spec.VolumeName)
	reason := Reason{CauseVolumeElsewhere, obj.KeyOf(claim), claim.Spec.VolumeName, ""}
	if volume == nil {
		reason.Cause, reason.Detail = CauseVolumeAbsent, "the volume that the claim is bound to does not exist"
		return &boundClaim{reason: reason}
	}
	usability := usabilityOf(volume, view)
	if usability.required != nil {
		reason.Detail = "the volume is for nodes with " + oneline.OrNone(match.AffinityText(usability.required))
	}
	return &boundClaim{exists: true, usability: usability, reason: reason}
}

func newUnboundClaim(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, request Request) (*unboundClaim, error) {
	criteria, err := match.NewCriteria(claim, match.Terms{Class: class})
	if err != nil {
		return nil, err
	}
	c := &unboundClaim{criteria: criteria, class: class}
	c.selected, c.hasSelected = claim.Annotations[storageclass.SelectedNodeAnnotation]
	if !c.hasSelected {
		c.promised, c.selected = request.Assumptions.promised(claim)
		c.hasSelected = c.selected != ""
	}
	return c, nil
}

// beginQueries gives each unbound claim its query on the Index.
func (p *planner) beginQueries() {
	for claims := range slices.Chunk(p.unbound, maxLookUps) {
		p.index.Read(func(reader index.Reader) {
			for _, claim := range claims {
				claim.Query = reader.Query(&claim.criteria)
				claim.related = claim.HasRelated()
			}
		})
	}
}

// hold calls plan while the Index does not change, unless the pod has so many claims that others would have to wait for long: then
// each look-up holds it for itself.
func (p *planner) hold(plan func()) {
	if len(p.unbound) > maxJointly {
		plan()
		return
	}
	p.index.Read(func(reader index.Reader) {
		for _, claim := range p.unbound {
			reader.Renew(claim.Query)
		}
		p.held = true
		defer func() { p.held = false }()
		plan()
	})
}

// look calls f while the Index does not change, for a query.
func (p *planner) look(query *index.Query, f func()) {
	if p.held {
		f()
		return
	}
	p.index.Read(func(reader index.Reader) {
		reader.Renew(query)
		f()
	})
}

// preselect looks up the volumes that the claims' selectors match.
func (p *planner) preselect() {
	for _, r := range p.rivals {
		for _, k := range r.kinds {
			claims := k.claims[:1]
			if r.jointly() {
				claims = k.claims
			}
			for _, claim := range claims {
				p.look(claim.Query, claim.Preselect)
			}
		}
	}
}

// on returns the plan for a node.
func (p *planner) on(node *corev1.Node) Plan {
	plan := Plan{Pod: p.pod, PodUID: p.podUID, Node: node, Refused: p.refused}
	if len(p.refused) > 0 {
		return plan
	}
	p.reasons.next, p.bindings.next, p.provisions.next = p.reasons.next[:0], p.bindings.next[:0], p.provisions.next[:0]
	for _, bound := range p.bound {
		if bound.failed = !bound.exists || !bound.on(node); bound.failed {
			p.addReason(bound.reason)
		}
	}
	if p.addProvisionedElsewhere(node) {
		plan.Reasons = p.reasons.share()
		plan.nodeReasons.add(p.checks.firstBound())
		plan.nodeReasons.add(CauseProvisionedElsewhere)
		return plan
	}
	for _, source := range p.sources {
		source.lookOn(node)
	}
	for _, claim := range p.unbound {
		p.findOptions(claim, node)
	}
	for _, rivals := range p.rivals {
		p.chooseIn(rivals)
	}
	for _, claim := range p.unbound {
		p.addOutcome(claim)
	}
	if len(p.reasons.next) > 0 {
		plan.Reasons = p.reasons.share()
		plan.nodeReasons.add(p.checks.firstBound())
		plan.nodeReasons.add(p.checks.firstUnbound())
		return plan
	}
	plan.Bindings, plan.Provisions = p.bindings.share(), p.provisions.share()
	return plan
}

// addReason adds a reason why the pod cannot have its volumes on the node.
func (p *planner) addReason(reason Reason) {
	if len(p.reasons.next) < p.maxReasons {
		p.reasons.next = append(p.reasons.next, reason)
	}
}

// addProvisionedElsewhere adds a reason for each claim whose volume is being provisioned for another node, and reports whether
// there is one: then the rest does not matter (S4).
func (p *planner) addProvisionedElsewhere(node *corev1.Node) (found bool) {
	for _, claim := range p.unbound {
		if claim.hasSelected && claim.selected != node.Name {
			found = true
			detail := claim.detail.of(CauseProvisionedElsewhere, "its volume is being provisioned for node ", claim.selected, "")
			p.addReason(Reason{CauseProvisionedElsewhere, obj.KeyOf(claim.Claim), "", detail})
		}
	}
	return found
}

// findOptions finds what the claim can get on a node: the volume pre-bound to it, or else a free one. A volume that the Index has
// reserved for the claim counts as pre-bound. If the plan of another pod assumes a volume for the claim, only that one will do
// until the plan is reverted (M13).
func (p *planner) findOptions(c *unboundClaim, node *corev1.Node) {
	c.Node = node
	c.option = option{candidates: c.candidates[:0]}
	c.pool, c.blocked = c.provision()
	if c.hasSelected {
		return
	}
	if c.related {
		p.look(c.Query, func() { c.assigned, c.elsewhere = c.PreBound() })
	}
	switch {
	case c.promised != "" && (c.assigned == nil || c.assigned.Name != c.promised):
		c.assigned, c.elsewhere, c.blocked = nil, c.promised, CausePreBoundElsewhere
	case c.assigned == nil && c.elsewhere == "":
		c.choosing = true
	}
}

// addOutcome adds what the claim gets, or why it gets nothing.
func (p *planner) addOutcome(claim *unboundClaim) {
	switch {
	case claim.assigned != nil:
		p.bindings.next = append(p.bindings.next, index.Binding{Claim: claim.Claim, Volume: claim.assigned})
	case claim.blocked == "":
		p.provisions.next = append(p.provisions.next, Provision{claim.Claim, claim.pool})
	case len(p.reasons.next) < p.maxReasons:
		p.addReason(p.reason(claim))
	}
}

// reason returns why the claim can have no volume on the node: one reason, the one that kube-scheduler would give. It has the
// search summary, unless volumes fit that others of the pod's claims need or the volume is being provisioned.
func (p *planner) reason(c *unboundClaim) Reason {
	reason := Reason{Cause: c.blocked, Claim: obj.KeyOf(c.Claim)}
	switch {
	case c.blocked == CauseStorage:
		reason.Detail = c.detail.of(CauseStorage, "no storage of class ", c.class.Name, " that the node can use has room for a volume of this size")
	case c.elsewhere != "":
		reason.Cause, reason.Volume = CausePreBoundElsewhere, c.elsewhere
		reason.Detail = "the volume is pre-bound to the claim and cannot be used on the node"
	case c.best != nil:
		reason.Cause, reason.Volume = CauseContended, c.best.Name
		reason.Detail = "the volumes that fit the claim are needed by other claims of the pod"
	case c.blocked == CauseTopology:
		reason.Detail = c.detail.of(CauseTopology, "class ", c.class.Name, " does not allow volumes to be provisioned for the node")
	default:
		reason.Detail = c.detail.of(CauseNoVolume, "class ", c.class.Name, " provisions none")
	}
	if len(p.reasons.next) < p.summarizes && !c.hasSelected && reason.Cause != CauseContended {
		p.look(c.Query, func() { reason.Detail += "; " + c.Summary().String() })
	}
	return reason
}

// detail is the text for a cause that was made last: it is the same on most nodes.
type detail struct {
	cause Cause
	text  string
}

func (d *detail) of(cause Cause, before, name, after string) string {
	if d.cause != cause {
		d.cause, d.text = cause, before+name+after
	}
	return d.text
}

// shared is a list for the plan that is made, which has that of the node before if they are equal. Most nodes are refused for the
// same reasons, and what may be provisioned is often the same too.
type shared[E comparable] struct {
	next, last []E
	room       []E // for the lists to come
}

// roomFor is how many elements memory is allocated for at a time.
const roomFor = 64

func (s *shared[E]) share() []E {
	if !slices.Equal(s.next, s.last) {
		if cap(s.room)-len(s.room) < len(s.next) {
			s.room = make([]E, 0, max(len(s.next), min(roomFor, 2*cap(s.room))))
		}
		from := len(s.room)
		s.room = append(s.room, s.next...)
		s.last = s.room[from:len(s.room):len(s.room)]
	}
	if len(s.last) == 0 {
		return nil
	}
	return s.last
}
