package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

func TestCheckNamed(t *testing.T) {
	cases := []struct {
		rule string
		edit volumeEdit
		want []binding.Reason
	}{
		{"C7 fits", labelled("tier", "gold"), nil},
		{"C7 not the selector (M8)", labelled("tier", "tin"), nil},
		{"C7 not the phase (M9)", inPhase(corev1.VolumeFailed), nil},
		{"C7 not the node (M10)", onlyIn("b"), nil},
		{"C7 M1", beingDeleted, []binding.Reason{binding.Deleting}},
		{"C7 M3 X7", sized("-1"), []binding.Reason{binding.Malformed}},
		{"C7 M3", sized("1Gi"), []binding.Reason{binding.TooSmall}},
		{"C7 M4", offering(corev1.ReadWriteMany), []binding.Reason{binding.AccessModes}},
		{"C7 M5", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
			[]binding.Reason{binding.VolumeMode}},
		{"C7 M6", ofClass("slow"), []binding.Reason{binding.StorageClass}},
		{"C7 M7", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("iops") },
			[]binding.Reason{binding.AttributesClass}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, err := binding.CheckNamed(fitClaim(askingLabel("tier", "gold")), fitVolume("pv-a", c.edit))
			require.NoError(t, err)
			assert.Equal(t, c.want, reasons(got))
		})
	}
}
