package bindingtest

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

// checkClaimChange holds a claim to A3. What is left of the spec after the changes that are allowed
// must be as it was.
func checkClaimChange(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := checkClassMove(claim, old)
	if old.Spec.VolumeName != "" && claim.Spec.VolumeName != old.Spec.VolumeName {
		errs = append(errs, field.Forbidden(spec("volumeName"), "once set, it cannot be changed"))
	}
	errs = append(errs, checkRequests(claim, old)...)
	errs = append(errs, checkAttributesClass(claim, old)...)
	rest, oldRest := claim.Spec.DeepCopy(), old.Spec.DeepCopy()
	for _, s := range []*corev1.PersistentVolumeClaimSpec{rest, oldRest} {
		s.VolumeName, s.StorageClassName, s.VolumeAttributesClassName, s.VolumeMode = "", nil, nil, nil
		delete(s.Resources.Requests, corev1.ResourceStorage)
	}
	errs = append(errs, unchanged(spec("volumeMode"), claim.Spec.VolumeMode, old.Spec.VolumeMode)...)
	return append(errs, unchanged(spec(), rest, oldRest)...)
}

// checkClassMove lets a class be given where there was none, and the beta annotation, otherwise
// immutable, be moved into the field.
func checkClassMove(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	class, oldClass := claim.Spec.StorageClassName, old.Spec.StorageClassName
	beta, hasBeta := claim.Annotations[betaClass]
	oldBeta, hadBeta := old.Annotations[betaClass]
	given := oldClass == nil && class != nil && (!hadBeta || *class == oldBeta)
	var errs field.ErrorList
	if !given && !equality.Semantic.DeepEqual(class, oldClass) {
		errs = append(errs, field.Forbidden(spec("storageClassName"), "cannot be changed, only given where it was nil"))
	}
	if moved := given && hadBeta && !hasBeta; beta != oldBeta && !moved {
		errs = append(errs, field.Forbidden(metadata("annotations").Key(betaClass), "cannot be changed"))
	}
	return errs
}

func checkRequests(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	size, oldSize := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	path := spec("resources", "requests").Key(string(corev1.ResourceStorage))
	has := old.Status.Capacity[corev1.ResourceStorage]
	switch {
	case size.Cmp(oldSize) == 0:
		return nil
	case old.Status.Phase != corev1.ClaimBound:
		return field.ErrorList{field.Forbidden(path, "can be changed only while the claim is Bound")}
	case size.Cmp(oldSize) < 0 && size.Cmp(has) <= 0:
		return field.ErrorList{field.Forbidden(path, "cannot be less than status.capacity, nor shrink to it")}
	}
	return nil
}

func checkAttributesClass(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	name, oldName := claim.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName
	path := spec("volumeAttributesClassName")
	switch {
	case equality.Semantic.DeepEqual(name, oldName):
		return nil
	case old.Status.Phase != corev1.ClaimBound:
		return field.ErrorList{field.Forbidden(path, "can be changed only while the claim is Bound")}
	case old.Status.CurrentVolumeAttributesClassName != nil && (name == nil || *name == ""):
		return field.ErrorList{field.Forbidden(path, "cannot be removed while status.currentVolumeAttributesClassName is set")}
	}
	return nil
}

// checkResize is what the admission plugin PersistentVolumeClaimResize does: only a class with
// allowVolumeExpansion lets a claim grow (A3).
func (s *Server) checkResize(call *Call, object, old obj.Object) error {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || call.Subresource == Status {
		return nil
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(old.(*corev1.PersistentVolumeClaim).Spec.Resources.Requests[corev1.ResourceStorage]) <= 0 {
		return nil
	}
	class, ok := s.objects.get(obj.Key{Kind: KindClass, Name: className(claim)}).object.(*storagev1.StorageClass)
	if ok && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
		return nil
	}
	info, _ := infoOf(call.Key.Kind)
	return apierrors.NewForbidden(info.groupResource(), call.Key.Name, errors.New("its class does not allow volume expansion"))
}

func className(claim *corev1.PersistentVolumeClaim) string {
	if beta, ok := claim.Annotations[betaClass]; ok {
		return beta
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}
