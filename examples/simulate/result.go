package main

import (
	"context"
	"slices"

	"github.com/pvbind/pvbind/binding/scheduling"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// result is what a simulation leaves behind.
type result struct {
	*dump.View
	placed  []placedPod // by the simulation, in order
	blocked []placedPod // had a node from the beginning, and cannot mount all their volumes
	waiting []waitingPod
	events  []decision.Event
}

// placedPod is a pod on a node, and those of its volumes that stand for claims.
type placedPod struct {
	*corev1.Pod
	volumes []scheduling.PodVolume
}

// reason says why a claim is not Bound, in one line.
type reason struct {
	claim *corev1.PersistentVolumeClaim
	text  string
}

func (s *simulation) result(ctx context.Context) (result, error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return result{}, err
	}
	r := result{View: dump.NewView(objects), waiting: s.pods.waiting, events: s.server.Events()}
	r.addPods(objects, s.pods.placed)
	return r, nil
}

// addPods adds the pods that are on a node and not ended. placed are those that the simulation has placed.
func (r *result) addPods(objects []obj.Object, placed []obj.Key) {
	order := map[obj.Key]int{}
	for i, key := range placed {
		order[key] = i
	}
	for _, pod := range onNodes(objects) {
		p := placedPod{pod, scheduling.VolumesOf(pod, r)}
		if _, ours := order[podKey(pod)]; ours {
			r.placed = append(r.placed, p)
		} else if slices.ContainsFunc(p.volumes, func(v scheduling.PodVolume) bool { return !v.Ready() }) {
			r.blocked = append(r.blocked, p)
		}
	}
	slices.SortFunc(r.placed, func(a, b placedPod) int { return order[podKey(a.Pod)] - order[podKey(b.Pod)] })
}

// onNodes returns the pods that are on a node and not ended.
func onNodes(objects []obj.Object) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !ended(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// reasons returns one for each claim that is not Bound.
func (r result) reasons() []reason {
	var reasons []reason
	for _, claim := range r.Claims {
		if claim.Status.Phase != corev1.ClaimBound {
			reasons = append(reasons, reason{claim, whyNotBound(claim, r)})
		}
	}
	return reasons
}

// whyNotBound returns the reason of the decision on the claim, and for one that may take any volume why none fits.
func whyNotBound(claim *corev1.PersistentVolumeClaim, view decision.View) string {
	explanation, err := decision.ExplainClaim(claim, view, decision.Options{})
	if explanation.State == "" && err != nil {
		return err.Error()
	}
	return explanation.String()
}

// objects reads everything from the server.
func (s *simulation) objects(ctx context.Context) ([]obj.Object, error) {
	var all []obj.Object
	for _, kind := range bindingtest.Kinds() {
		objects, err := s.server.List(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// trace lists every write and event after the first n calls, a line each, with who made it.
func (s *simulation) trace(n int) []string {
	var lines []string
	for _, call := range s.server.CallsSince(n) {
		if !call.Writes() && call.Verb != bindingtest.VerbRecord {
			continue
		}
		actor := "user"
		if call.Actor != "" {
			actor = call.Actor
		}
		lines = append(lines, actor+": "+dump.OneLine(call.String()))
	}
	return lines
}
