package binding

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// nextUnbound is for a claim that names no volume: the best that fits (C1), else a class (C2), a consumer
// (C3), a provisioner (C4), or patience (C5).
func nextUnbound(claim *corev1.PersistentVolumeClaim, view View, rules Rules) (Action, error) {
	found, err := view.Find(claim)
	if err != nil {
		return Action{}, err
	}
	action, err := nextMatched(claim, found, view, rules)
	action.Events = append(refusals(claim, found.Refused), action.Events...)
	return action, err
}

func nextMatched(claim *corev1.PersistentVolumeClaim, found match.Match, view View, rules Rules) (Action, error) {
	if found.Volume != nil {
		return bind(found.Volume, claim)
	}
	if storageclass.Unset(claim) {
		if class := view.DefaultClass(); class != nil {
			classed := claim.DeepCopy()
			classed.Spec.StorageClassName = new(class.Name)
			return updateClaim(classed, "C2", "no volume fits; "+class.Name+" is the default class"), nil
		}
	}
	name := storageclass.OfClaim(claim)
	class := view.Class(name)
	waits, err := match.WaitsForConsumer(class)
	switch {
	case err != nil:
		return Action{}, err
	case waits && !nodeSelected(claim):
		return awaitConsumer(claim, view), nil
	case name != "":
		return provision(claim, class, view, rules)
	}
	return noneFits(claim, view)
}

func nodeSelected(claim *corev1.PersistentVolumeClaim) bool {
	_, selected := claim.Annotations[storageclass.SelectedNodeAnnotation]
	return selected
}

// noneFits is the end of C5. The explanation is not part of what makes the event a new one: the binding of
// any other claim changes its counts, and would send it again for every claim that waits (X8).
func noneFits(claim *corev1.PersistentVolumeClaim, view View) (Action, error) {
	search, err := view.Summary(claim)
	if err != nil {
		return Action{}, err
	}
	message := "no volume fits and the claim names no storage class"
	explanation := message + ": " + search.String()
	event := normal(claim, EventFailedBinding, explanation)
	event.same = message
	waiting := wait("C5", explanation, event)
	return pend(claim, waiting.explained(Explanation{State: ClaimUnmatched, Message: message, Search: &search})), nil
}

// awaitConsumer is for a claim whose class binds it only when a pod is scheduled (C3).
func awaitConsumer(claim *corev1.PersistentVolumeClaim, view View) Action {
	state, reason, message := ClaimAwaitsConsumer, EventWaitForConsumer, "waiting for a pod that uses the claim before it is bound"
	pods := unscheduled(claim, view)
	if len(pods) > 0 {
		state, reason, message = ClaimAwaitsScheduling, EventWaitForPodScheduled, "waiting for its pods to be scheduled: "+strings.Join(pods, ", ")
	}
	waiting := wait("C3", message, normal(claim, reason, message))
	return pend(claim, waiting.explained(Explanation{State: state, Class: storageclass.OfClaim(claim), Pods: pods}))
}

// unscheduled are the names of the claim's pods that have neither a node nor finished, in the view's order.
func unscheduled(claim *corev1.PersistentVolumeClaim, view View) []string {
	var names []string
	pods, _ := view.PodsOf(claim.Namespace, claim.Name)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && !reclaim.Finished(pod) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// refusals tell claim and volume alike that a volume set aside for the claim does not fit it (M12). Of a
// Held volume of another volume mode its own sync tells (V2).
func refusals(claim *corev1.PersistentVolumeClaim, refused []match.Refusal) []Event {
	var events []Event
	for _, refusal := range refused {
		set := "set aside for"
		if phase.LinkOf(refusal.Volume, claim) == phase.Held {
			set = "bound to"
			if refusal.Mismatches.Has(match.VolumeMode) {
				continue
			}
		}
		message := fmt.Sprintf("volume %q is %s claim %s/%s but does not fit it: %s",
			refusal.Volume.Name, set, claim.Namespace, claim.Name, refusal.Mismatches)
		events = append(events, warning(claim, EventVolumeMismatch, message), warning(refusal.Volume, EventVolumeMismatch, message))
	}
	return events
}
