package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

func TestCheckNamed(t *testing.T) {
	cases := []struct {
		rule string
		edit VolumeEdit
		want []match.Reason
	}{
		{"C7 fits", Labelled("tier", "gold"), nil},
		{"C7 not the selector (M8)", Labelled("tier", "tin"), nil},
		{"C7 not the phase (M9)", InPhase(corev1.VolumeFailed), nil},
		{"C7 not the node (M10)", OnlyIn("b"), nil},
		{"C7 M1", BeingDeleted, []match.Reason{match.Deleting}},
		{"C7 M3 X7", Sized("-1"), []match.Reason{match.Malformed}},
		{"C7 M3", Sized("1Gi"), []match.Reason{match.TooSmall}},
		{"C7 M4", Offering(corev1.ReadWriteMany), []match.Reason{match.AccessModes}},
		{"C7 M5", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
			[]match.Reason{match.VolumeMode}},
		{"C7 M6", OfClass("slow"), []match.Reason{match.StorageClass}},
		{"C7 M7", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("iops") },
			[]match.Reason{match.AttributesClass}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, err := match.CheckNamed(FitClaim(RequestingLabel("tier", "gold")), FitVolume("pv-a", c.edit), nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, reasons(got))
		})
	}
}
