package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Explanation is the state of a claim, and what it waits for. As JSON it has the fields below;
// those that do not apply are left out.
type Explanation struct {
	Claim obj.Key    `json:"claim"` // such as "pvc/shop/data"
	State ClaimState `json:"state"`
	// Rule is the number of the behaviour rule that decided.
	Rule string `json:"rule"`
	// Message says it in one line. The event on the claim, if there is one, begins with it.
	Message string `json:"message"`

	// Volume is the name of the one that the claim names, or is being bound to.
	Volume string `json:"volume,omitempty"`
	// Mismatches are why that volume does not fit the claim (ClaimVolumeMismatch).
	Mismatches match.Mismatches `json:"mismatches,omitempty"`
	// Holder is the claim that has that volume (ClaimVolumeTaken, ClaimLost), if one claim has it. It may be an earlier one
	// of the same name.
	Holder obj.Key `json:"holder,omitzero"`
	// Class is the claim's class, if no volume fits and one of that class is to come. Provisioner makes volumes for it, and
	// Node is the one that the scheduler chose, where the volume is to be usable.
	Class       string `json:"class,omitempty"`
	Provisioner string `json:"provisioner,omitempty"`
	Node        string `json:"node,omitempty"`
	// Pods are the names of the first pods that must be scheduled (ClaimAwaitsScheduling), or of those that use a claim
	// being deleted (ClaimTerminating), in order.
	Pods []string `json:"pods,omitempty"`
	// Finalizers are what else keeps a claim that is being deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// Search says why no volume fits, if volumes were searched.
	Search *match.Summary `json:"search,omitempty"`
}

// ClaimState is what a claim has or waits for.
type ClaimState string

const (
	// ClaimBound means that it has its volume, and nothing is to be done (C11).
	ClaimBound ClaimState = "Bound"
	// ClaimBinding means that it has found its volume, or has it again, and some of the four writes are to be made
	// (C1, C7, C8, C11).
	ClaimBinding ClaimState = "Binding"
	// ClaimUnmatched means that no volume fits, and that it names no class that could make one (C5).
	ClaimUnmatched ClaimState = "NoVolumeFits"
	// ClaimAwaitsConsumer means that its class is WaitForFirstConsumer, and no pod uses it (C3).
	ClaimAwaitsConsumer ClaimState = "AwaitsConsumer"
	// ClaimAwaitsScheduling means that its class is WaitForFirstConsumer, and none of its pods has a node (C3).
	ClaimAwaitsScheduling ClaimState = "AwaitsScheduling"
	// ClaimAwaitsProvisioner means that no volume fits, and a provisioner is to make one (C4, P2, P3).
	ClaimAwaitsProvisioner ClaimState = "AwaitsProvisioner"
	// ClaimUnprovisionable means that no volume fits, and no provisioner serves its class (P1).
	ClaimUnprovisionable ClaimState = "NoProvisioner"
	// ClaimAwaitsVolume means that the volume it names does not exist (C6).
	ClaimAwaitsVolume ClaimState = "AwaitsVolume"
	// ClaimVolumeMismatch means that the volume it names does not fit it (C7).
	ClaimVolumeMismatch ClaimState = "VolumeMismatch"
	// ClaimVolumeTaken means that the volume it names is another claim's (C9).
	ClaimVolumeTaken ClaimState = "VolumeTaken"
	// ClaimContended means that it is bound to a volume without claimRef, and so are other claims (C11).
	ClaimContended ClaimState = "VolumeContended"
	// ClaimLost means that it was bound, and its volume does not exist or is another claim's (C10).
	ClaimLost ClaimState = "Lost"
	// ClaimTerminating means that it is being deleted (C12, F2).
	ClaimTerminating ClaimState = "Terminating"
)

// ExplainClaim returns what a claim waits for, as NextForClaim decides it, with the numbers of the search for a volume.
// Annotations and finalizers that NextForClaim would write first are taken for written, and so is the default class
// (G2, F1, C2). It reads nothing live: what the view lacks is taken to be absent.
//
// Errors are those of NextForClaim, but for a missing UID: a claim that is not stored yet is explained as if it were. Beside
// the error of C9 there is an explanation.
func ExplainClaim(claim *corev1.PersistentVolumeClaim, view View, options Options) (Explanation, error) {
	if claim.UID == "" {
		stored := *claim
		stored.UID = "not stored yet" // no claimRef has it
		claim = &stored
	}
	action, err := NextForClaim(claim, view, options)
	for err == nil && action.explains == nil && action.Claim != nil {
		claim = action.Claim
		action, err = NextForClaim(claim, view, options)
	}
	if action.explains == nil {
		return Explanation{Claim: obj.KeyOf(claim)}, err
	}
	explanation := *action.explains
	explanation.Claim, explanation.Finalizers = obj.KeyOf(claim), slices.Clone(explanation.Finalizers)
	if explanation.State == ClaimBinding && (action.Writes() || action.Kind == Read) {
		explanation.Message = fmt.Sprintf("volume %q is being bound to it; the next write sets %s", explanation.Volume, writeName(explanation.Rule))
	}
	if explanation.State == ClaimTerminating { // a decision has no use for all their names
		explanation.Pods = usersOf(claim, view)
	}
	if explanation.Class != "" { // no volume was found, and one of that class is to come
		search, _ := view.Summary(claim) // no error, for Find had none
		explanation.Search = &search
	}
	return explanation, err
}

// String returns the message in one line, with the search if there was one, and with what keeps a claim that is being deleted.
func (e Explanation) String() string {
	switch {
	case e.State == ClaimTerminating:
		return oneline.Text(e.Message+": "+keptByText(e.Finalizers, e.Pods), messageLimit)
	case e.Search != nil:
		return oneline.Text(e.Message+": "+e.Search.String(), messageLimit)
	}
	return e.Message
}

// explained returns the action with what it means for its claim.
func (a Action) explained(as Explanation) Action {
	as.Rule, as.Message = a.Rule, cmp.Or(as.Message, a.Why)
	a.explains = &as
	return a
}

// explainTerminating explains a claim that is being deleted.
func explainTerminating(claim *corev1.PersistentVolumeClaim) Explanation {
	return Explanation{
		State: ClaimTerminating, Volume: claim.Spec.VolumeName, Finalizers: claim.Finalizers,
		Message: "the claim is being deleted: nothing new is begun for it",
	}
}

// usersOf returns the names of the pods that use the claim, in order (F2). A pod without a node does not.
func usersOf(claim *corev1.PersistentVolumeClaim, view View) (names []string) {
	names, _ = view.UsersOf(claim, math.MaxInt)
	slices.Sort(names)
	return names
}

// keptByText says what keeps an object that is being deleted.
func keptByText(finalizers, pods []string) string {
	text := "no finalizer left"
	if len(finalizers) > 0 {
		text = "finalizers " + oneline.Join(finalizers, ", ", func(finalizer string) string { return finalizer })
	}
	if len(pods) > 0 {
		text += ", and the pods that use it: " + strings.Join(pods, ", ")
	}
	return text
}
