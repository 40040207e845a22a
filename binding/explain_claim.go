package binding

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// Explanation says how a claim stands, and what stands between it and a volume. As JSON it has the fields below;
// those that do not apply are left out.
type Explanation struct {
	Claim obj.Key    `json:"claim"` // such as "pvc/shop/data"
	State ClaimState `json:"state"`
	// Rule is the number of the behaviour rule that decided.
	Rule string `json:"rule"`
	// Message says it in one line, as the event on the claim begins, if there is one.
	Message string `json:"message"`

	// Volume is the one that the claim names, or is being bound to.
	Volume string `json:"volume,omitempty"`
	// Mismatches are why that volume does not fit the claim (ClaimMismatched).
	Mismatches match.Mismatches `json:"mismatches,omitempty"`
	// Holder is whose that volume is (ClaimRefused, ClaimLost), if it is one claim's. It may be an earlier one of the
	// same name.
	Holder obj.Key `json:"holder,omitzero"`
	// Class is the claim's class, and Provisioner who makes volumes for it. Node is where the volume is to be
	// usable: the scheduler chose it.
	Class       string `json:"class,omitempty"`
	Provisioner string `json:"provisioner,omitempty"`
	Node        string `json:"node,omitempty"`
	// Pods are the names of the pods that must be scheduled first (ClaimAwaitsScheduling), or that use a claim
	// being deleted (ClaimTerminating).
	Pods []string `json:"pods,omitempty"`
	// Finalizers are what else keeps a claim that is being deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// Search is what became of the volumes that the claim could have had, if it may have any.
	Search *match.Summary `json:"search,omitempty"`
}

// ExplainClaim says what a claim waits for, as NextForClaim decides it, with the numbers of the search for a volume.
// Annotations and finalizers that NextForClaim would write first are taken for written, and so is the default class
// (G2, F1, C2). It asks for no live read: what the view does not know of is taken to be absent.
//
// Errors are those of NextForClaim. Beside the one of C9 there is an explanation.
func ExplainClaim(claim *corev1.PersistentVolumeClaim, view View, rules Rules) (Explanation, error) {
	action, err := NextForClaim(claim, view, rules)
	for err == nil && action.explains == nil {
		claim = action.Claim
		action, err = NextForClaim(claim, view, rules)
	}
	if action.explains == nil {
		return Explanation{Claim: obj.KeyOf(claim)}, err
	}
	explanation := *action.explains
	explanation.Claim = obj.KeyOf(claim)
	if explanation.State == ClaimBinding {
		explanation.Message = fmt.Sprintf("it is to have volume %q, and %s is the next of the four writes that bind them", explanation.Volume, explanation.Rule)
	}
	if explanation.Search == nil && explanation.State.searched() {
		search, failed := view.Summary(claim)
		if failed != nil {
			return explanation, failed
		}
		explanation.Search = &search
	}
	return explanation, err
}

// String is the message in one line, with the search if there was one, and with what keeps a claim that is being deleted.
func (e Explanation) String() string {
	switch {
	case e.State == ClaimTerminating:
		return oneline.Text(e.Message+": "+keptBy(e.Finalizers, e.Pods), eventLimit)
	case e.Search != nil:
		return oneline.Text(e.Message+": "+e.Search.String(), eventLimit)
	}
	return e.Message
}

// explained is the action with what it means for its claim.
func (a Action) explained(as Explanation) Action {
	as.Rule, as.Message = a.Rule, cmp.Or(as.Message, a.Why)
	a.explains = &as
	return a
}

// terminating explains a claim that is being deleted.
func terminating(claim *corev1.PersistentVolumeClaim, view View) Explanation {
	e := Explanation{State: ClaimTerminating, Volume: claim.Spec.VolumeName, Finalizers: slices.Clone(claim.Finalizers)}
	e.Message = "the claim is being deleted: nothing new is begun for it"
	e.Pods = usersOf(claim, view)
	return e
}

// usersOf are the names of the pods that use the claim (F2), in the view's order. One without a node does not.
func usersOf(claim *corev1.PersistentVolumeClaim, view View) []string {
	var names []string
	pods, _ := view.PodsOf(claim.Namespace, claim.Name)
	for _, pod := range pods {
		if reclaim.UsesClaim(pod, claim) {
			names = append(names, pod.Name)
		}
	}
	return names
}
