package apitest

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/obj"
)

// patchTries is how often a patch is applied anew to an object that others change, if it says of no version that it is for that.
const patchTries = 5

// patchObject applies a patch to what is stored, and writes the result. An apply creates what does not exist.
func (s *Server) patchObject(ctx context.Context, on store, op operation) (obj.Object, error) {
	var err error
	for range patchTries {
		var stored, result, answer obj.Object
		stored, err = s.Server.Get(ctx, op.key())
		absent := apierrors.IsNotFound(err) && op.patch.PatchType == types.ApplyPatchType
		if err != nil && !absent {
			return nil, err
		}
		if result, err = patched(stored, op.patch); err != nil {
			return nil, err
		}
		if absent {
			return on.Create(ctx, result)
		}
		answer, err = update(ctx, on, op.Subresource, result)
		if !apierrors.IsConflict(err) || result.GetResourceVersion() != stored.GetResourceVersion() {
			return answer, err
		}
	}
	return nil, err
}

// patched returns the object as client-go's own fake patches it; nil stands for one that does not exist. What became of
// fields that others than appliers own is not recorded.
func patched(stored obj.Object, patch clienttesting.PatchActionImpl) (obj.Object, error) {
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	if patch.PatchType == types.ApplyPatchType {
		converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
		tracker = clienttesting.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), converter)
	}
	if stored != nil {
		if err := tracker.Add(typed(stored)); err != nil {
			return nil, err
		}
	}
	patch.Subresource = ""
	_, result, err := clienttesting.ObjectReaction(tracker)(patch)
	if known := apierrors.APIStatus(nil); err != nil && !errors.As(err, &known) {
		err = badRequest(err)
	}
	if err != nil {
		return nil, err
	}
	result.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return result.(obj.Object), nil
}
