package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// R8, X2: no other read comes between that of the volume and its deleter, whatever had to be read anew before.
func TestR8TheVolumeIsReadLast(t *testing.T) {
	a, rules := obj.VolumeKey("a"), decision.Options{Identity: "me", Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}
	released := func() *corev1.PersistentVolume {
		return At("20", KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(corev1.VolumeReleased), OnHostPath))
	}
	// announced is a sync that is to read the volume before its deleter runs.
	announced := func(t *testing.T) *talk {
		d := newTalk(t, rules, a, released())
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		return d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a")
	}
	edited := func(version int) *corev1.PersistentVolume {
		volume := At(fmt.Sprint(version), released())
		metav1.SetMetaDataLabel(&volume.ObjectMeta, "seen", fmt.Sprint(version))
		return volume
	}
	rest := func(d *talk) *talk {
		return d.says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound)
	}
	t.Run("it has changed, and the others are read anew", func(t *testing.T) {
		d := announced(t)
		d.returns(edited(30))
		rest(d).says("R8 Read pv/a")
		retained := edited(31)
		retained.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		d.returns(retained)
		for !d.step.Done {
			require.False(t, d.step.Action.RunsHook(), "%s", d.step.Action)
			d.stored()
		}
	})
	t.Run("and then not any more", func(t *testing.T) {
		d := announced(t)
		d.returns(edited(30))
		rest(d).says("R8 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("a cache contradicts what is known of it", func(t *testing.T) {
		d := newTalk(t, rules, a, released())
		d.starts().announces()
		d.state.Recheck(released())
		d.says("R3 Read volumeattachments").gets(nil, nil).says("B6 Read pv/a").again()
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R8 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	older := func(t *testing.T) *talk {
		d := announced(t)
		return d.returns(At("19", released())).says("R3 Read pv/a")
	}
	t.Run("V3 and is shown older than it is, and then twice as it is", func(t *testing.T) {
		older(t).again().says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("V3 and is shown older than it was read before, once", func(t *testing.T) {
		d := announced(t)
		d.returns(edited(30))
		rest(d).says("R8 Read pv/a").returns(At("19", released()))
		assert.Equal(t, decision.Read, d.step.Action.Kind, "%s", d.step.Action)
		assert.Equal(t, a, d.step.Action.Key)
	})
	t.Run("V3 W8 a restore, and an old reply after one that shows it", func(t *testing.T) {
		d := older(t).again().says("R3 Read pv/a").returns(At("19", released())).says("R3 Read pv/a").returns(At("19", released()))
		assert.ErrorIs(t, d.step.Err, engine.ErrWentBack)
	})
	t.Run("somebody takes its finalizer off", func(t *testing.T) { // and may delete it while the deleter is at work
		d := announced(t)
		bare := At("30", d.state.Known(a).(*corev1.PersistentVolume).DeepCopy())
		bare.Finalizers = nil
		d.gets(bare, nil).announces()
		assert.Contains(t, d.state.Known(a).GetFinalizers(), reclaim.AnnouncementFinalizer)
		rest(d).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("somebody edits it all the time", func(t *testing.T) {
		d := announced(t)
		for version := 30; !d.step.Done; version++ {
			switch asked := d.step.Action; {
			case asked.RunsHook():
				t.Fatal("the deleter runs on a volume that has changed since the rest was read")
			case asked.Key == a:
				d.returns(edited(version))
			case asked.Key == DataKey:
				d.gets(nil, ErrNotFound)
			default:
				d.gets(nil, nil)
			}
		}
		assert.ErrorContains(t, d.step.Err, "no end after 64 steps")
		assert.NotZero(t, d.step.After, "W6")
		assert.Equal(t, d.step.After, d.state.Start(d.key).After, "W6: whatever wakes it")
		d.state.SetTime(time.Now().Add(d.step.After))
		d.starts().announces()
		rest(d).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
}

// TestV3AnAnnouncementTakesAProofOfItsOwn: a restore that nobody has noticed brings the claim back between the write that releases its volume and the call.
func TestV3AnAnnouncementTakesAProofOfItsOwn(t *testing.T) {
	volume := At("20", KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(corev1.VolumeBound), OnHostPath))
	d := newTalk(t, decision.Options{Identity: "me", Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}, obj.VolumeKey("a"), volume)
	d.starts().says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("V3 UpdateVolumeStatus pv/a").stored()
	d.announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data")
	d.took(d.state.Proceed(d.key, engine.Reply{Err: NotFoundError(DataKey)})).says("V3 Read pvc/default/data")
	d.gets(At("19", KnownClaim(BoundTo("a"))), nil)
	for !d.step.Done {
		require.False(t, d.step.Action.RunsHook(), "%s", d.step.Action)
		if d.step.Action.Writes() {
			d.stored()
		} else {
			d.again()
		}
	}
}
