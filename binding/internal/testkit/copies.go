package testkit

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/match"
)

// CopyOf returns a deep copy of a Snapshot.
func CopyOf(s decision.Snapshot) decision.Snapshot {
	return decision.Snapshot{
		Volumes: Copies(s.Volumes), Claims: Copies(s.Claims), Classes: Copies(s.Classes), Pods: Copies(s.Pods), Attachments: Copies(s.Attachments),
		LiveReads: slices.Clone(s.LiveReads), Absent: maps.Clone(s.Absent), Answers: copiesOfAnswers(s.Answers), Now: s.Now, Announced: maps.Clone(s.Announced),
	}
}

func copiesOfAnswers(answers []decision.Answer) []decision.Answer {
	copied := slices.Clone(answers)
	for i := range copied {
		copied[i].Volume = copied[i].Volume.DeepCopy()
	}
	return copied
}

// Copies returns deep copies of objects.
func Copies[T interface{ DeepCopy() T }](objects []T) []T {
	copied := slices.Clone(objects)
	for i := range copied {
		copied[i] = copied[i].DeepCopy()
	}
	return copied
}

// CopiesOf returns deep copies of volumes.
func CopiesOf(volumes []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	var copied []*corev1.PersistentVolume
	for _, volume := range volumes {
		copied = append(copied, volume.DeepCopy())
	}
	return copied
}

// Copied returns a deep copy of a request.
func Copied(request match.Request) match.Request {
	request.Claim = request.Claim.DeepCopy()
	request.Class = request.Class.DeepCopy()
	request.Node = request.Node.DeepCopy()
	request.Volumes = slices.Clone(request.Volumes)
	for i, volume := range request.Volumes {
		request.Volumes[i] = volume.DeepCopy()
	}
	return request
}

// RequireUnmodified compares a request, its volumes in any order, with a copy of it (X6).
func RequireUnmodified(t *testing.T, before, after match.Request) {
	t.Helper()
	byName := func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(before.Volumes, byName)
	slices.SortFunc(after.Volumes, byName)
	require.Equal(t, before.Volumes, after.Volumes, "X6")
	require.Equal(t, before.Claim, after.Claim, "X6")
	require.Equal(t, before.Class, after.Class, "X6")
	require.Equal(t, before.Node, after.Node, "X6")
}

// Spoil overwrites whatever a write holds that could belong to somebody else. A hook gets copies (Rh), and what is
// deleted is not sent.
func Spoil(action decision.Action) {
	if !action.Writes() || action.Kind == decision.DeleteVolume {
		return
	}
	if volume := action.Volume; volume != nil {
		SpoilMeta(&volume.ObjectMeta)
		SpoilModes(volume.Spec.AccessModes)
		clear(volume.Spec.Capacity)
		for i := range volume.Spec.MountOptions {
			volume.Spec.MountOptions[i] = "spoilt"
		}
		if name := volume.Spec.VolumeAttributesClassName; name != nil {
			*name = "spoilt"
		}
		if volume.Spec.ClaimRef != nil {
			volume.Spec.ClaimRef.UID = "spoilt"
		}
	}
	if claim := action.Claim; claim != nil {
		SpoilMeta(&claim.ObjectMeta)
		SpoilModes(claim.Spec.AccessModes)
		SpoilModes(claim.Status.AccessModes)
		clear(claim.Spec.Resources.Requests)
		clear(claim.Status.Capacity)
		for _, name := range []*string{claim.Spec.StorageClassName, claim.Status.CurrentVolumeAttributesClassName} {
			if name != nil {
				*name = "spoilt"
			}
		}
	}
}

// SpoilMeta overwrites what the metadata of an object points to.
func SpoilMeta(meta *metav1.ObjectMeta) {
	clear(meta.Annotations)
	clear(meta.Labels)
	for i := range meta.Finalizers {
		meta.Finalizers[i] = "spoilt"
	}
}

// SpoilModes overwrites access modes.
func SpoilModes(modes []corev1.PersistentVolumeAccessMode) {
	for i := range modes {
		modes[i] = "spoilt"
	}
}
