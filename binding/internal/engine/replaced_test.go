package engine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// V1, X3: a volume that is made in place of another is listed for before it is given away or made Available, however its
// controller was told that the other is gone.
func TestV1AVolumeInPlaceOfAnother(t *testing.T) {
	a := obj.VolumeKey("a")
	first := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	second := At("20", KnownVolume("a", InPhase(corev1.VolumePending)))
	second.UID = "uid-of-second"
	for name, told := range map[string]func(d *talk){
		"its deletion is seen":      func(d *talk) { d.state.ObserveDeleted(first); d.state.Observe(second) },
		"its deletion comes late":   func(d *talk) { d.state.Observe(second); d.state.ObserveDeleted(first) },
		"its deletion is not shown": func(d *talk) { d.state.Observe(second) },
	} {
		t.Run(name+": it is made Available", func(t *testing.T) {
			d := newTalk(t, decision.Options{}, a, first)
			told(d)
			d.starts().says("V1 Read pvc").gets(nil, nil).says("V1 UpdateVolumeStatus pv/a").stored().ends()
		})
		t.Run(name+": a claim takes it", func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, first)
			told(d)
			d.state.Observe(KnownClaim())
			d.starts().says("V1 Read pvc").gets(nil, nil).says("B1 UpdateVolume pv/a")
		})
	}
	for name, reply := range map[string]struct {
		claim obj.Object
		err   error
	}{
		"in an older version":            {claim: At("29", KnownClaim(Named("owner")))},
		"in none as of an older version": {err: AbsentAsOf(obj.ClaimKey("default", "owner"), "29")},
	} {
		t.Run("V1 its owner is in the list, and read "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, KnownVolume("a", InPhase(corev1.VolumeBound)), KnownClaim(Naming("a")))
			d.starts().says("V1 Read pvc")
			d.took(d.state.Proceed(d.key, engine.Reply{Claims: []*corev1.PersistentVolumeClaim{At("30", KnownClaim(Named("owner"), BoundTo("a")))}}))
			d.says("V1 Read pvc/default/owner").gets(reply.claim, reply.err).ends()
			assert.Positive(t, d.step.After, "W6")
			assert.Equal(t, []string{"Warning VolumeMismatch"}, d.published)
		})
	}
	t.Run("nobody had its name before", func(t *testing.T) {
		newTalk(t, decision.Options{}, a, second).starts().says("V1 UpdateVolumeStatus pv/a")
		newTalk(t, decision.Options{}, DataKey, second, KnownClaim()).starts().says("B1 UpdateVolume pv/a")
	})
	t.Run("it was made Available", func(t *testing.T) {
		available := At("21", second.DeepCopy())
		available.Status.Phase = corev1.VolumeAvailable
		newTalk(t, decision.Options{}, DataKey, first, available, KnownClaim()).starts().says("B1 UpdateVolume pv/a")
	})
}

// M2: a volume is made again whose claim is Lost since it went. That claim owns it, whatever others ask for, and however often it is made.
func TestM2ALostClaimOwnsWhatIsMadeAgain(t *testing.T) {
	owner, lost := KnownClaim(BoundTo("a")), At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
	other := KnownClaim(Named("other"), OfUID("uid-2"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	names := KnownClaim(Named("names"), OfUID("uid-3"), Naming("a"))
	state := engine.New(Unprotected(decision.Options{}), 10)
	volume := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	for _, object := range []obj.Object{volume, owner, other, names} {
		state.Observe(object)
	}
	state.ObserveDeleted(volume)
	state.Observe(lost)
	for again := range 2 {
		volume = At(fmt.Sprint(40+again), KnownVolume("a", InPhase(corev1.VolumePending)))
		volume.UID = types.UID(fmt.Sprint("uid-again-", again))
		woken := state.Observe(volume)
		assert.Contains(t, woken, DataKey)
		for _, key := range []obj.Key{obj.KeyOf(other), obj.KeyOf(names)} {
			for step := state.Start(key); !step.Done; step = state.Proceed(key, engine.Reply{Object: step.Action.Claim}) {
				assert.Equal(t, decision.UpdateClaimStatus, step.Action.Kind, "%s gets nothing: %s", key, step.Action)
			}
		}
		if again == 0 {
			state.ObserveDeleted(volume)
		}
	}
	step := state.Start(DataKey)
	for !step.Done && step.Action.Kind == decision.Read {
		reply := engine.Reply{Object: lost}
		if step.Action.Key == obj.ClaimsKey() {
			reply = engine.Reply{Claims: []*corev1.PersistentVolumeClaim{lost}}
		}
		step = state.Proceed(DataKey, reply)
	}
	require.False(t, step.Done)
	assert.Equal(t, "B1 UpdateVolume pv/a", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String())
}
