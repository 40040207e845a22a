package storageclass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func named(name string) *string { return &name }

// An annotation that is nil is missing.
func annotated(annotation *string) map[string]string {
	if annotation == nil {
		return map[string]string{"unrelated": "gold"}
	}
	return map[string]string{corev1.BetaStorageClassAnnotation: *annotation}
}

func TestClassOfClaim(t *testing.T) {
	for _, test := range []struct {
		name       string
		annotation *string
		field      *string
		class      string
		unset      bool
	}{
		{"M6 C2 not stated: no class, a default may be set", nil, nil, "", true},
		{"M6 C2 empty field: no class, and none requested", nil, named(""), "", false},
		{"M6 C2 field", nil, named("gold"), "gold", false},
		{"M6 C2 empty annotation alone", named(""), nil, "", false},
		{"M6 empty annotation wins over field", named(""), named("gold"), "", false},
		{"M6 empty annotation and empty field", named(""), named(""), "", false},
		{"M6 annotation alone", named("silver"), nil, "silver", false},
		{"M6 annotation wins over field", named("silver"), named("gold"), "silver", false},
		{"M6 X9 no class has so long a name", named(strings.Repeat("n", 300)), nil, strings.Repeat("n", 253) + "…", false},
		{"M6 annotation wins over empty field", named("silver"), named(""), "silver", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var claim corev1.PersistentVolumeClaim
			claim.Annotations = annotated(test.annotation)
			claim.Spec.StorageClassName = test.field

			assert.Equal(t, test.class, OfClaim(&claim))
			assert.Equal(t, test.unset, Unset(&claim))
		})
	}
}

func TestClassOfVolume(t *testing.T) {
	for _, test := range []struct {
		name       string
		annotation *string
		field      string
		class      string
	}{
		{"M6 not stated", nil, "", ""},
		{"M6 field", nil, "gold", "gold"},
		{"M6 empty annotation wins over field", named(""), "gold", ""},
		{"M6 annotation wins over field", named("silver"), "gold", "silver"},
		{"M6 annotation alone", named("silver"), "", "silver"},
		{"M6 empty annotation alone", named(""), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var volume corev1.PersistentVolume
			volume.Annotations = annotated(test.annotation)
			volume.Spec.StorageClassName = test.field

			assert.Equal(t, test.class, OfVolume(&volume))
		})
	}
}

func TestBareObjectsHaveNoClass(t *testing.T) {
	assert.Empty(t, OfClaim(&corev1.PersistentVolumeClaim{}), "M6")
	assert.Empty(t, OfVolume(&corev1.PersistentVolume{}), "M6")
	assert.True(t, Unset(&corev1.PersistentVolumeClaim{}), "C2")
}
