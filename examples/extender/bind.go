package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

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
	if err := s.Cluster.BindVolumes(ctx, pod, node, nil); err != nil { // planned now, for other pods may have been bound since the filter
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
