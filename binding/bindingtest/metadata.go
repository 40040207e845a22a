package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

// dropNamespace takes the namespace from an object that is in none, as the API does.
func dropNamespace(object obj.Object) {
	if key, err := KeyOf(object); err == nil && key.Namespace == "" {
		object.SetNamespace("")
	}
}

// keepMetadata puts back what is the server's own, as the API does before it checks an update: what
// may be left out, and what may not be undone.
func keepMetadata(object, old obj.Object) {
	if object.GetUID() == "" {
		object.SetUID(old.GetUID())
	}
	object.SetResourceVersion(old.GetResourceVersion())
	object.SetGeneration(old.GetGeneration())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		object.SetDeletionTimestamp(deleted.DeepCopy())
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && object.GetDeletionGracePeriodSeconds() == nil {
		seconds := *grace
		object.SetDeletionGracePeriodSeconds(&seconds)
	}
}

// checkMetadata refuses a deletion by update, and new finalizers on an object being deleted (A5).
func checkMetadata(object, old obj.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(object, old, metadata())
	return append(errs, validation.ValidateFinalizers(object.GetFinalizers(), metadata("finalizers"))...)
}

func checkStatus(object obj.Object) field.ErrorList {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	var errs field.ErrorList
	for name, quantity := range claim.Status.Capacity {
		if quantity.Sign() < 0 {
			path := field.NewPath("status", "capacity").Key(string(name))
			errs = append(errs, field.Invalid(path, quantity.String(), "must not be negative"))
		}
	}
	return errs
}
