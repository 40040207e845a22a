package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// M2, W8: a claim that was seen to be Bound owns the volume that it had, and no other one that its tenant names once a restore, whose revisions go on, has
// taken back which that was.
func TestM2W8AClaimOwnsNoVolumeThatItWasNotBoundTo(t *testing.T) {
	for names, owns := range map[string]bool{"own": true, "disk": false} {
		state := New(decision.Options{}, 1)
		claim := func(version, volume string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
			c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "loot", UID: "uid-loot", ResourceVersion: version}}
			c.Spec.VolumeName, c.Status.Phase = volume, phase
			return c
		}
		state.Observe(claim("10", "own", corev1.ClaimBound))
		state.observeLive(obj.ClaimKey("evil", "loot"), Parse(claim("10", names, corev1.ClaimPending))) // the server gives a version anew
		if owns {
			assert.Equal(t, []obj.Key{obj.ClaimKey("evil", "loot")}, state.index.Owners(names))
		} else {
			assert.Empty(t, state.index.Owners(names))
		}
	}
}

// R8, X9: a call that goes on under a volume that is gone is forgotten once so much has gone since that nothing is known of the volume, too.
func TestX9CallsAreForgottenWithTheirVolumes(t *testing.T) {
	state := New(decision.Options{}, 1)
	goes := func(name string, calls bool) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "10"}}
		if calls {
			reclaim.Announce(volume, reclaim.Announcement{By: "me", Token: 5})
		}
		state.Observe(volume)
		if calls {
			state.beginCall(decision.Action{Kind: decision.RunDeleter, Volume: volume})
		}
		state.ObserveDeleted(volume)
	}
	goes("a", true)
	assert.Contains(t, state.goesOn, "a")
	for n := range 2 * generation {
		goes(fmt.Sprint("other-", n), false)
	}
	goes("b", true)
	assert.Len(t, state.goesOn, 1)
	assert.Contains(t, state.goesOn, "b")
}
