package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// scheduler places pods by their volumes alone, whatever their resources, taints and affinities. It keeps only what is
// printed about pods in the end.
type scheduler struct {
	client *bindingtest.Client
	placed []obj.Key // in order
	// waiting are those that have no node, as of the last pass.
	waiting []waitingPod
}

type waitingPod struct {
	pod obj.Key
	why string
}

// pass makes an attempt for every pod that has claims and no node: the writes of its plan on the best node or, once all
// its claims are bound, to place it. It reports whether it has written anything.
func (s *scheduler) pass(ctx context.Context, objects []obj.Object) (wrote bool, err error) {
	s.waiting = nil
	pods, nodes := podsAndNodes(objects)
	if len(pods) == 0 {
		return false, nil
	}
	view := dump.NewView(objects)
	a := attempt{scheduling.Request{View: view, Index: view.Index(), Assumptions: &scheduling.Assumptions{}}, nodes, usersOf(objects)}
	for _, pod := range pods {
		a.Pod = pod
		changed, why, err := s.schedule(ctx, a)
		if err != nil {
			return wrote, err
		}
		wrote = wrote || changed
		if why != "" {
			s.waiting = append(s.waiting, waitingPod{podKey(pod), why})
		}
	}
	return wrote, nil
}

// podsAndNodes returns the pods to be placed, in the order of their names, and the nodes.
func podsAndNodes(objects []obj.Object) (pods []*corev1.Pod, nodes []*corev1.Node) {
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			nodes = append(nodes, o)
		case *corev1.Pod:
			if toBePlaced(o) {
				pods = append(pods, o)
			}
		}
	}
	slices.SortFunc(pods, dump.ByName)
	return pods, nodes
}

func toBePlaced(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !ended(pod) && len(reclaim.ClaimNames(pod)) > 0
}

// schedule makes an attempt for one pod, and returns why it is not placed; "" if it is.
func (s *scheduler) schedule(ctx context.Context, a attempt) (wrote bool, why string, err error) {
	if why := a.notNow(); why != "" {
		return false, why, nil
	}
	plans, err := scheduling.PlanPodOnNodes(a.Request, a.nodes)
	if err != nil {
		return false, strings.TrimPrefix(err.Error(), podKey(a.Pod).String()+": "), nil // it is about the pod's claims, and does not delay other pods
	}
	plan, fits := plans.Best(scheduling.PackingShape().Score)
	if !fits {
		return false, a.whyNowhere(plans), nil
	}
	if why := a.users.exclude(a.Pod, a.View); why != "" {
		return false, why, nil
	}
	// Until the pass ends, which writes the plan, no other pod may get what this one was promised.
	if _, ok := a.Assumptions.Assume(a.Index, plan); !ok {
		return false, "", errors.New(plans.Pod.String() + ": its volumes changed while it was planned")
	}
	a.users.add(a.Pod)
	wrote, step, err := s.carryOut(ctx, plan)
	switch {
	case err != nil:
		return wrote, "", err
	case step.Kind != decision.Nothing:
		return wrote, plan.Node.Name + " is chosen; " + step.Why, nil
	}
	return true, "", s.place(ctx, a.Pod, plan.Node.Name)
}

// carryOut makes the plan's writes, up to the step that is none.
func (s *scheduler) carryOut(ctx context.Context, plan scheduling.Plan) (wrote bool, step scheduling.Step, err error) {
	for {
		step, err = scheduling.NextForPlan(plan, liveView{ctx, s.client})
		if err != nil || !step.Writes() {
			return wrote, step, err
		}
		if step.Kind == decision.UpdateVolume {
			_, err = s.client.UpdateVolume(ctx, step.Volume)
		} else {
			_, err = s.client.UpdateClaim(ctx, step.Claim)
		}
		if err != nil {
			return wrote, step, err
		}
		wrote = true
	}
}

func (s *scheduler) place(ctx context.Context, pod *corev1.Pod, node string) error {
	placed := pod.DeepCopy()
	placed.Spec.NodeName = node
	if _, err := s.client.Update(ctx, placed); err != nil {
		return err
	}
	s.placed = append(s.placed, podKey(pod))
	return nil
}

func podKey(pod *corev1.Pod) obj.Key { return bindingtest.PodKey(pod.Namespace, pod.Name) }

// attempt is one attempt to place a pod, and what it is placed with.
type attempt struct {
	scheduling.Request
	nodes []*corev1.Node
	users users
}

// notNow returns why no node is looked for; "" if one is.
func (a attempt) notNow() string {
	if gates := a.Pod.Spec.SchedulingGates; len(gates) > 0 {
		return "it is not to be placed before its scheduling gate " + gates[0].Name + " is removed"
	}
	if len(a.nodes) == 0 {
		return "there are no nodes to place it on"
	}
	return ""
}

// whyNowhere returns the scheduler's line, and then what that leaves open: which claim it is about, or why the volumes do
// not fit on the first of the nodes.
func (a attempt) whyNowhere(plans scheduling.Plans) string {
	line := plans.String()
	plan, err := scheduling.PlanPod(a.Request, a.nodes[0])
	if err != nil {
		return line
	}
	for _, reason := range plan.Refused {
		if !strings.Contains(line, reason.String()) {
			line += " " + reason.String()
		}
	}
	separator := " On " + plan.Node.Name + ": "
	for _, reason := range plan.Reasons {
		line += separator + reason.String()
		separator = "; "
	}
	return line
}

// users has for each claim the names of the pods that use it on a node.
type users map[obj.Key][]string

func usersOf(objects []obj.Object) users {
	u := users{}
	for _, pod := range onNodes(objects) {
		u.add(pod)
	}
	return u
}

// ended reports whether the pod uses its claims no more. One that is being deleted still does.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (u users) add(pod *corev1.Pod) {
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		u[key] = append(u[key], pod.Name)
	}
}

// exclude returns why the pod has to wait for others that use its claims; "" if it need not.
func (u users) exclude(pod *corev1.Pod, view scheduling.ObjectView) string {
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		claim, _ := view.Claim(pod.Namespace, name)
		if claim == nil {
			continue
		}
		if modes, err := accessmode.Of(claim.Spec.AccessModes...); err == nil && !modes.AllowsPod(pod.Name, u[key]...) {
			return fmt.Sprintf("%s is for one pod at a time, and pod %s uses it", key, u[key][0])
		}
	}
	return ""
}

// liveView reads from the server in memory, which fails a look-up only for what is absent.
type liveView struct {
	context.Context
	client *bindingtest.Client
}

var _ scheduling.ObjectView = liveView{}

// Volume looks up a volume.
func (v liveView) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	volume, err := v.client.GetVolume(v, name)
	if err != nil {
		return nil, decision.AbsentInLiveRead
	}
	return volume, decision.FromLiveRead
}

// Claim looks up a claim.
func (v liveView) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	claim, err := v.client.GetClaim(v, namespace, name)
	if err != nil {
		return nil, decision.AbsentInLiveRead
	}
	return claim, decision.FromLiveRead
}

// Owners returns the claims that are Bound to the volume.
func (v liveView) Owners(volume string) (owners []obj.Key) {
	claims, err := v.client.ListClaims(v)
	if err != nil {
		return nil
	}
	for _, claim := range claims {
		if phase.Owned(claim) == volume {
			owners = append(owners, obj.KeyOf(claim))
		}
	}
	return owners
}
