package extender

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

// bind binds the pod's claims and then the pod. An error is in the result, where the scheduler reads it. It then tries the
// pod anew.
func (s *Server) bind(ctx context.Context, args *schedulerv1.ExtenderBindingArgs) (*schedulerv1.ExtenderBindingResult, error) {
	if err := checkBindingArgs(args); err != nil {
		return nil, err
	}
	log := s.logger().With("pod", args.PodNamespace+"/"+args.PodName, "node", args.Node)
	if err := s.bindPod(ctx, args); err != nil {
		log.Warn("not bound", "error", err)
		return &schedulerv1.ExtenderBindingResult{Error: err.Error()}, nil
	}
	log.Info("bound")
	return &schedulerv1.ExtenderBindingResult{}, nil
}

func (s *Server) bindPod(ctx context.Context, args *schedulerv1.ExtenderBindingArgs) error {
	ctx, cancel := context.WithTimeout(ctx, s.bindTimeout())
	defer cancel()
	pod, err := s.pod(ctx, args)
	if err != nil {
		return err
	}
	node, err := s.Cluster.nodes.Get(args.Node)
	if err != nil {
		return fmt.Errorf("node %s: %s", args.Node, unknownNode)
	}
	if err := s.bindVolumes(ctx, pod, node); err != nil {
		return err
	}
	return s.Clientset.CoreV1().Pods(args.PodNamespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: args.Node},
	}, metav1.CreateOptions{})
}

// pod returns the pod of the request. One that is not in the cache may be newer than that, so it is read live.
func (s *Server) pod(ctx context.Context, args *schedulerv1.ExtenderBindingArgs) (*corev1.Pod, error) {
	pod, err := s.Cluster.pods.Pods(args.PodNamespace).Get(args.PodName)
	if err != nil || pod.UID != args.PodUID {
		pod, err = s.Clientset.CoreV1().Pods(args.PodNamespace).Get(ctx, args.PodName, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) || err == nil && pod.UID != args.PodUID {
		return nil, executor.ErrPodGone
	}
	return pod, err
}

// attempts bounds how often a bind is planned anew because somebody else was faster.
const attempts = 5

// bindVolumes plans anew for the node, for other pods may have been bound since the filter, and carries the plan out.
func (s *Server) bindVolumes(ctx context.Context, pod *corev1.Pod, node *corev1.Node) error {
	var err error
	for range attempts {
		if err = s.tryVolumes(ctx, pod, node); executor.OutcomeOf(err) != executor.PlanAnew {
			break
		}
	}
	return err
}

func (s *Server) tryVolumes(ctx context.Context, pod *corev1.Pod, node *corev1.Node) error {
	plan, err := scheduling.PlanPod(s.Cluster.Request(pod), node)
	if err != nil {
		return err
	}
	if !plan.Fits() {
		return &executor.Error{Outcome: executor.ScheduleElsewhere, Reasons: append(plan.Refused, plan.Reasons...)}
	}
	assumption, ok := s.Cluster.Assume(plan)
	if !ok {
		return &executor.Error{Outcome: executor.PlanAnew, Err: errors.New("another pod was faster")}
	}
	return s.Cluster.CarryOut(ctx, assumption)
}
