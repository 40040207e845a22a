package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/pvbind/pvbind/binding/obj"
)

// makeClaims makes what is missing of the claims of generic ephemeral volumes, as kube-controller-manager does, for the
// pods that are to be placed. A pod whose claim the server refuses waits for it.
func (s *simulation) makeClaims(ctx context.Context, objects []obj.Object) (made bool, err error) {
	client := s.server.NewClient("ephemeral-volume-controller")
	pods, _ := podsAndNodes(objects)
	for _, pod := range pods {
		for i := range pod.Spec.Volumes {
			claim := claimOfVolume(pod, &pod.Spec.Volumes[i])
			if claim == nil || s.server.Claim(claim.Namespace, claim.Name) != nil {
				continue
			}
			_, err := client.Create(ctx, claim)
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				s.note(fmt.Sprintf("%s: its ephemeral volume %s: %v", podKey(pod), pod.Spec.Volumes[i].Name, err))
			} else if err != nil {
				return made, err
			}
			made = made || err == nil
		}
	}
	return made, nil
}

// claimOfVolume is the claim to make for a volume of the pod; nil if it is not ephemeral, or says nothing of a claim.
func claimOfVolume(pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolumeClaim {
	if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil {
		return nil
	}
	template := volume.Ephemeral.VolumeClaimTemplate
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            ephemeral.VolumeClaimName(pod, volume),
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// collect deletes what is left without owners, and settles, until nothing is.
func (s *simulation) collect(ctx context.Context) error {
	for {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if collected, err := s.server.CollectGarbage(ctx); err != nil || len(collected) == 0 {
			return err
		}
	}
}
