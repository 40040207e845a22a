package e2e

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

const (
	byController  = "pv.kubernetes.io/bound-by-controller"
	bindCompleted = "pv.kubernetes.io/bind-completed"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	ns            = metav1.NamespaceDefault
)

func volume(name, size string, changes ...func(pv)) pv {
	return bindingtest.Volume(name, size, changes...)
}

func claim(name, size string, changes ...func(pvc)) pvc {
	return bindingtest.Claim(ns, name, size, changes...)
}

func class(name string, changes ...func(sc)) sc { return bindingtest.Class(name, changes...) }

// forClaim pre-binds a volume to a claim.
func forClaim(name string) func(pv) {
	return func(v pv) { v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: name} }
}

// heldBy has a volume bound, or being bound, to that very claim.
func heldBy(c pvc) func(pv) {
	return func(v pv) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	}
}

func policy(policy corev1.PersistentVolumeReclaimPolicy) func(pv) {
	return func(v pv) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

func block(v pv) { v.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock) }

func ofClass(name string) func(pv) { return func(v pv) { v.Spec.StorageClassName = name } }

func noted(annotation string) func(pv) {
	return func(v pv) { metav1.SetMetaDataAnnotation(&v.ObjectMeta, annotation, "yes") }
}

// naming has a claim ask for that volume.
func naming(volume string) func(pvc) { return func(c pvc) { c.Spec.VolumeName = volume } }

func inClass(name string) func(pvc) { return func(c pvc) { c.Spec.StorageClassName = &name } }

// annotated puts annotations on a claim.
func annotated(annotations ...string) func(pvc) {
	return func(c pvc) {
		for _, annotation := range annotations {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, annotation, "yes")
		}
	}
}

func waiting(c sc) { c.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer) }

func provisioner(name string) func(sc) { return func(c sc) { c.Provisioner = name } }

func defaultClass(c sc) { c.Annotations = map[string]string{isDefault: "true"} }

func ptr[T any](value T) *T { return &value }
