package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	upstream "k8s.io/component-helpers/storage/volume"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// Kubernetes' own helpers import client-go, so that reclaim, phase and storageclass keep their own constants and look-ups. Here
// they are held to Kubernetes'.

func TestConstantsAreKubernetesOwn(t *testing.T) {
	for ours, theirs := range map[string]string{
		phase.BindCompletedAnnotation:          upstream.AnnBindCompleted,
		phase.BoundByControllerAnnotation:      upstream.AnnBoundByController,
		phase.ProvisionedByAnnotation:          upstream.AnnDynamicallyProvisioned,
		storageclass.SelectedNodeAnnotation:    upstream.AnnSelectedNode,
		storageclass.MigratedToAnnotation:      upstream.AnnMigratedTo,
		storageclass.ProvisionerAnnotation:     upstream.AnnStorageProvisioner,
		storageclass.BetaProvisionerAnnotation: upstream.AnnBetaStorageProvisioner,
		storageclass.NoProvisioner:             upstream.NotSupportedProvisioner,
		reclaim.ExternalFinalizer:              upstream.PVDeletionProtectionFinalizer,
		reclaim.InTreeFinalizer:                upstream.PVDeletionInTreeProtectionFinalizer,
	} {
		assert.Equal(t, theirs, ours)
	}
}

func TestClaimRefStateAgreesWithKubernetes(t *testing.T) {
	texts := []string{"", "a", "b"}
	for _, claim := range everyClaim(texts) {
		free := &corev1.PersistentVolume{}
		assert.Equal(t, upstream.IsVolumeBoundToClaim(free, claim), ours(phase.ClaimRefStateOf(free, claim)), "L1")
		for _, reference := range everyClaim(texts) {
			volume := &corev1.PersistentVolume{}
			volume.Spec.ClaimRef = &corev1.ObjectReference{
				Namespace: reference.Namespace, Name: reference.Name, UID: reference.UID,
			}
			state := phase.ClaimRefStateOf(volume, claim)
			assert.Equal(t, upstream.IsVolumeBoundToClaim(volume, claim), ours(state),
				"L2 L3 L4 L5 %s: %v, %v", state, volume.Spec.ClaimRef, claim.ObjectMeta)
		}
	}
}

// ours is what Kubernetes means by a volume bound to a claim.
func ours(state phase.ClaimRefState) bool {
	return state == phase.ClaimRefPreBound || state == phase.ClaimRefBound
}

func everyClaim(texts []string) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, namespace := range texts {
		for _, name := range texts {
			for _, uid := range texts {
				meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
				claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: meta})
			}
		}
	}
	return claims
}

func TestClassAgreesWithKubernetes(t *testing.T) {
	empty, gold, silver := "", "gold", "silver"
	for _, annotation := range []*string{nil, &empty, &gold, &silver} {
		meta := metav1.ObjectMeta{}
		if annotation != nil {
			meta.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: *annotation}
		}
		for _, field := range []*string{nil, &empty, &gold, &silver} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta}
			claim.Spec.StorageClassName = field
			assert.Equal(t, upstream.GetPersistentVolumeClaimClass(claim), storageclass.OfClaim(claim), "M6")
			assert.Equal(t, !upstream.PersistentVolumeClaimHasClass(claim), storageclass.Unset(claim), "C2")

			volume := &corev1.PersistentVolume{ObjectMeta: meta}
			if field != nil {
				volume.Spec.StorageClassName = *field
			}
			assert.Equal(t, upstream.GetPersistentVolumeClass(volume), storageclass.OfVolume(volume), "M6")
		}
	}
}

func TestEphemeralClaimNameAgreesWithKubernetes(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "data",
		VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
	}}
	assert.Equal(t, []string{ephemeral.VolumeClaimName(pod, &pod.Spec.Volumes[0])}, reclaim.ClaimNames(pod), "S1")
}
