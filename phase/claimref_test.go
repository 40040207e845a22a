package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClaimRefStateOf(t *testing.T) {
	for _, shape := range refs {
		t.Run(shape.name, func(t *testing.T) {
			for _, claim := range claims() {
				assert.Equal(t, shape.state, ClaimRefStateOf(newVolume(shape.ref), claim))
			}
		})
	}
}

func TestClaimRefStateOfClaimWithoutUID(t *testing.T) {
	claim := newClaim("")
	claim.UID = ""
	assert.Equal(t, ClaimRefPreBound, ClaimRefStateOf(newVolume(ref("shop", "data", "")), claim), "L2")
	assert.Equal(t, ClaimRefStale, ClaimRefStateOf(newVolume(ref("shop", "data", "u")), claim), "L4")
}

func TestClaimRefStateOfDoesNotLookAtPhaseOrAnnotations(t *testing.T) {
	claim := newClaim("")
	for _, volume := range volumes() {
		bare := newVolume(volume.Spec.ClaimRef)
		assert.Equal(t, ClaimRefStateOf(bare, claim), ClaimRefStateOf(volume, claim), "L")
	}
}

func TestClaimRefStateOfDoesNotAllocate(t *testing.T) {
	claim := newClaim("")
	for _, shape := range refs {
		volume := newVolume(shape.ref)
		var state ClaimRefState
		assert.Zero(t, testing.AllocsPerRun(100, func() { state = ClaimRefStateOf(volume, claim) }), shape.name)
		assert.Equal(t, shape.state, state)
	}
}

func TestAnnotationsCountByPresence(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		controller  bool
		completed   bool
	}{
		{"none", nil, false, false},
		{"others", map[string]string{"a": "yes"}, false, false},
		{"bound by controller", map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}, true, false},
		{"bound by controller, value no", map[string]string{"pv.kubernetes.io/bound-by-controller": "no"}, true, false},
		{"bound by controller, no value", map[string]string{"pv.kubernetes.io/bound-by-controller": ""}, true, false},
		{"bind completed", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}, false, true},
		{"bind completed, value no", map[string]string{"pv.kubernetes.io/bind-completed": "no"}, false, true},
		{"bind completed, no value", map[string]string{"pv.kubernetes.io/bind-completed": ""}, false, true},
	} {
		t.Run("L "+test.name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Annotations: test.annotations}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta}

			assert.Equal(t, test.completed, BindCompleted(claim))
			for _, object := range []metav1.Object{claim, &corev1.PersistentVolume{ObjectMeta: meta}} {
				assert.Equal(t, test.controller, BoundByController(object))
			}
		})
	}
}
