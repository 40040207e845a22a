package bindingtest

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// complete writes what an API server sets by itself and a fake leaves out, as far as binding depends on it (A1, A6), and returns the
// object as it is then.
func (s *settlement) complete(ctx context.Context, object obj.Object) obj.Object {
	key, err := KeyOf(object)
	if err != nil {
		return object
	}
	s.api.seen[key] = object
	if whole := withDefaults(object); whole != nil {
		stored, err := s.api.Update(ctx, whole)
		if err != nil {
			s.failed(key, err)
			return object
		}
		object = stored
	}
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase == "" {
		pending := claim.DeepCopy()
		pending.Status.Phase = corev1.ClaimPending
		stored, err := s.api.UpdateClaimStatus(ctx, pending)
		if err != nil {
			s.failed(key, err)
			return object
		}
		object = stored
	}
	return object
}

// withDefaults returns a copy with a UID and the defaults that decisions depend on; nil if the object has both. Nodes need neither.
func withDefaults(object obj.Object) obj.Object {
	lacks := object.GetUID() == ""
	switch o := object.(type) {
	case *corev1.Node, *storagev1.CSINode:
		return nil
	case *corev1.PersistentVolume:
		lacks = lacks || o.Spec.PersistentVolumeReclaimPolicy == ""
	case *storagev1.StorageClass:
		lacks = lacks || o.ReclaimPolicy == nil || o.VolumeBindingMode == nil
	}
	if !lacks {
		return nil
	}
	whole := object.DeepCopyObject().(obj.Object)
	SetDefaults(whole)
	if whole.GetUID() == "" {
		whole.SetUID(randomUID())
	}
	return whole
}

// randomUID returns a UID that no successor of the object has, in the form of those of a server.
func randomUID() types.UID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// makeEphemeralClaims makes the claims of generic ephemeral volumes, as kube-controller-manager does. Those of pods that are being
// deleted are not made any more.
func (s *settlement) makeEphemeralClaims(ctx context.Context) {
	for _, pod := range all[*corev1.Pod](s.world) {
		for _, volume := range pod.Spec.Volumes {
			if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil || pod.DeletionTimestamp != nil {
				continue
			}
			claim := ephemeralClaim(pod, volume)
			if existing, _ := s.world.Claim(claim.Namespace, claim.Name); existing != nil {
				continue // the pod's own or, if not, it is said where the pod is placed
			}
			if _, err := s.api.Create(ctx, claim); err != nil { // the next round finds what was made
				s.failed(obj.KeyOf(claim), err)
			}
		}
	}
}

func ephemeralClaim(pod *corev1.Pod, volume corev1.Volume) *corev1.PersistentVolumeClaim {
	template := volume.Ephemeral.VolumeClaimTemplate.DeepCopy()
	owner := *metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind(string(obj.KindPod)))
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            pod.Name + "-" + volume.Name,
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: template.Spec,
	}
}
