package apitest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/obj"
)

// operation is a request that reads or writes objects, with what its body and its query have.
type operation struct {
	Request
	sent     runtime.Object                // what is to be created or updated
	patch    clienttesting.PatchActionImpl // how to patch
	options  metav1.DeleteOptions          // how to delete
	selected metav1.ListOptions            // what a deletecollection deletes
	dryRun   []string
}

// store is what operations are done on: the client of a Server, or a copy of the server behind for a dry run.
type store interface {
	Get(context.Context, obj.Key) (obj.Object, error)
	Create(context.Context, obj.Object) (obj.Object, error)
	Update(context.Context, obj.Object) (obj.Object, error)
	UpdateStatus(context.Context, obj.Object) (obj.Object, error)
	Delete(context.Context, obj.Key, metav1.DeleteOptions) error
}

// do carries an operation out, and returns the object that is answered with; nil if there is none.
func (s *Server) do(ctx context.Context, op operation) (obj.Object, error) {
	var on store = s.Client
	if len(op.dryRun) > 0 {
		on, op.options.DryRun = s.Server.Clone(), nil
	}
	switch op.Verb {
	case "get":
		return on.Get(ctx, op.key())
	case "delete":
		return nil, on.Delete(ctx, op.key(), op.options)
	case "deletecollection":
		return nil, s.deleteAll(ctx, on, op)
	case "patch":
		return s.patchObject(ctx, on, op)
	}
	object, err := op.object()
	if err != nil {
		return nil, err
	}
	switch {
	case op.Verb == "create" && op.Subresource == "":
		return on.Create(ctx, object)
	case op.Verb == "create" && op.Subresource == "binding":
		return nil, bindPod(ctx, on, op, object)
	case op.Verb == "create": // of an eviction, which is not carried out
		op.Name = object.GetName()
		_, err := on.Get(ctx, op.key())
		return nil, err
	}
	return update(ctx, on, op.Subresource, object)
}

// object returns what was sent, in the namespace of the request.
func (op operation) object() (obj.Object, error) {
	object, ok := op.sent.(obj.Object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body has no object but %T", op.sent))
	}
	switch {
	case object.GetNamespace() == "":
		object.SetNamespace(op.Namespace)
	case op.Namespace != "" && object.GetNamespace() != op.Namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return object, nil
}

// update writes the status, or all else. The other subresources of pods are written as a part of the pod.
func update(ctx context.Context, on store, subresource string, object obj.Object) (obj.Object, error) {
	if subresource == "status" {
		return on.UpdateStatus(ctx, object)
	}
	return on.Update(ctx, object)
}

// deleteAll deletes each object of a selection.
func (s *Server) deleteAll(ctx context.Context, on store, op operation) error {
	items, _, err := s.list(ctx, op.Request, op.selected)
	if err != nil {
		return err
	}
	for _, object := range items {
		key := obj.Key{Kind: op.kind(), Namespace: object.GetNamespace(), Name: object.GetName()}
		if err := on.Delete(ctx, key, op.options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// bindPod assigns a pod to a node, as the server does with a Binding.
func bindPod(ctx context.Context, on store, op operation, sent obj.Object) error {
	binding, ok := sent.(*corev1.Binding)
	if !ok || op.kind() != obj.KindPod {
		return apierrors.NewBadRequest(fmt.Sprintf("a %T is not created in %s/%s", sent, op.Resource, op.Subresource))
	}
	op.Name = binding.Name
	object, err := on.Get(ctx, op.key())
	if err != nil {
		return err
	}
	pod := object.(*corev1.Pod)
	conflict := func(problem string) error {
		return apierrors.NewConflict(op.groupResource(), op.Name, fmt.Errorf("pod %s %s", op.Name, problem))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return conflict("has another UID")
	case pod.DeletionTimestamp != nil:
		return conflict("is being deleted, cannot be assigned to a host")
	case pod.Spec.NodeName != "":
		return conflict("is already assigned to node " + pod.Spec.NodeName)
	}
	pod.Spec.NodeName = binding.Target.Name
	_, err = on.Update(ctx, pod)
	return err
}
