package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/reclaim"
)

// scheduler places pods by their volumes alone: it knows nothing of processors, taints or affinities. It remembers
// only what is to be told about pods in the end.
type scheduler struct {
	client *bindingtest.Client
	placed []placedPod
	// waiting are those that have no node, as of the last pass.
	waiting []waitingPod
}

type placedPod struct {
	pod  obj.Key
	node string
}

type waitingPod struct {
	pod obj.Key
	why string
}

// pass does for every pod that has claims and no node what can be done now: the writes of its plan on the best node or,
// once all its claims are bound, to place it. It reports whether it has written anything.
func (s *scheduler) pass(ctx context.Context, objects []obj.Object) (wrote bool, err error) {
	s.waiting = nil
	pods, nodes := podsAndNodes(objects)
	if len(pods) == 0 {
		return false, nil
	}
	view := dump.NewView(objects)
	t := turn{binding.PodRequest{View: view, Index: view.Index(), Assumed: &binding.Assumptions{}}, nodes, usersOf(objects)}
	for _, pod := range pods {
		t.Pod = pod
		changed, why, err := s.schedule(ctx, t)
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

// podsAndNodes are the pods to be placed, in the order of their names, and the nodes.
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
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nodes
}

func toBePlaced(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !ended(pod) && len(reclaim.ClaimNames(pod)) > 0
}

// schedule does what it can for one pod, and says why it is not placed; "" if it is.
func (s *scheduler) schedule(ctx context.Context, t turn) (wrote bool, why string, err error) {
	if why := t.notNow(); why != "" {
		return false, why, nil
	}
	plans, err := binding.PlanPodOnNodes(t.PodRequest, t.nodes)
	if err != nil {
		return false, strings.TrimPrefix(err.Error(), podKey(t.Pod).String()+": "), nil // it is about the pod's claims, and does not keep other pods waiting
	}
	plan, fits := plans.Best(binding.Score)
	if !fits {
		return false, t.whyNowhere(plans), nil
	}
	if why := t.users.refuse(t.Pod, t.View); why != "" {
		return false, why, nil
	}
	// What is promised to this pod, the next one is not to get. It ends with the pass, which writes it.
	if _, ok := t.Assumed.Assume(t.Index, plan); !ok {
		return false, "", errors.New(plans.Pod.String() + ": its volumes changed while it was planned")
	}
	t.users.add(t.Pod)
	wrote, step, err := s.carryOut(ctx, plan)
	switch {
	case err != nil:
		return wrote, "", err
	case step.Kind != binding.Nothing:
		return wrote, plan.Node.Name + " is chosen; " + step.Why, nil
	}
	return true, "", s.place(ctx, t.Pod, plan.Node.Name)
}

// carryOut makes the plan's writes, up to the step that is none.
func (s *scheduler) carryOut(ctx context.Context, plan binding.PodPlan) (wrote bool, step binding.PlanStep, err error) {
	for {
		step, err = binding.NextForPlan(plan, liveView{ctx, s.client})
		if err != nil || !step.Writes() {
			return wrote, step, err
		}
		if step.Kind == binding.UpdateVolume {
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
	s.placed = append(s.placed, placedPod{podKey(pod), node})
	return nil
}

// left are the pods it has placed that nobody has deleted.
func (s *scheduler) left(objects []obj.Object) []placedPod {
	there := map[obj.Key]bool{}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			there[podKey(pod)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.placed), func(p placedPod) bool { return !there[p.pod] })
}

func podKey(pod *corev1.Pod) obj.Key { return bindingtest.PodKey(pod.Namespace, pod.Name) }
