package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// provisioned is a sync whose provisioner has given the answer.
func provisioned(t *testing.T, volume *corev1.PersistentVolume, answer error) *talk {
	t.Helper()
	d := newTalk(t, withTwo(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	if volume == nil {
		return d.gets(nil, answer)
	}
	return d.gets(volume, answer)
}

// withTwo are options with the provisioner of the class and another one, each with its deleter.
func withTwo() decision.Options {
	return Hooked(func(names *hooks.Names) {
		names.Provisioners.Insert("other.example.com")
		names.Deleters.Insert("other.example.com")
	})
}

// toOther is what a tenant writes onto a claim so that another provisioner is asked about it.
func toOther(claim *corev1.PersistentVolumeClaim) {
	claim.Annotations[storageclass.ProvisionerAnnotation], claim.Annotations[storageclass.BetaProvisionerAnnotation] = "other.example.com", "other.example.com"
}

// lets has somebody else let the claim go.
func (d *talk) lets() *talk {
	d.Helper()
	d.ends().state.ObserveDeleted(d.state.Known(DataKey))
	return d.starts()
}

func TestP2WhatMayHaveBeenMadeForAClaimThatGoesLater(t *testing.T) {
	t.Run("P2 its provisioner was at work", func(t *testing.T) {
		d := provisioned(t, nil, InProgress(time.Minute)).lets().leftoverDeleted(nil).ends()
		d.starts().ends()
	})
	t.Run("P2 or had failed", func(t *testing.T) {
		provisioned(t, nil, ErrBroken).lets().leftoverDeleted(nil).ends()
	})
	t.Run("P2 or refused for good", func(t *testing.T) {
		provisioned(t, nil, Meaning(hooks.Refused)).lets().leftoverDeleted(nil).ends()
	})
	t.Run("P2 the deleter of what does not fit was at work", func(t *testing.T) {
		d := provisioned(t, MadeVolume(Sized("1Gi")), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
		d.announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1").gets(nil, InProgress(time.Minute))
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).lets().leftoverDeleted(nil).ends()
	})
	t.Run("P2 it is at work for several syncs", func(t *testing.T) {
		d := provisioned(t, nil, InProgress(time.Minute)).ends().starts()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, InProgress(time.Minute))
		d.lets().leftoverDeleted(nil).ends()
		d.starts().ends()
	})
	t.Run("P2 while the claim exists its finalizer stands for that", func(t *testing.T) {
		d := provisioned(t, nil, InProgress(time.Minute)).ends()
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("P2 X2 a volume that is seen to stand for it has its say", func(t *testing.T) {
		provisioned(t, nil, InProgress(time.Minute)).ends().comesAndGoes(storedOwn()).lets().ends()
	})
	t.Run("P2 a volume that was seen to stand for what the deleter has deleted does not stand for what is made after it", func(t *testing.T) {
		d := provisioned(t, MadeVolume(Sized("1Gi")), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored()
		d.comesAndGoes(storedOwn()).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil).says("R8 UpdateClaim pvc/default/data").stored()
		d.state.ObserveDeleted(storedOwn()) // once more, late
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, InProgress(time.Minute))
		d.lets().leftoverDeleted(nil).ends()
	})
	t.Run("P2 the deleter has run before the claim went", func(t *testing.T) {
		d := provisioned(t, nil, InProgress(time.Minute)).ends()
		deleted := At("60", ProvisioningClaim())
		deleted.DeletionTimestamp = new(metav1.Unix(1, 0))
		d.state.Observe(deleted)
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 UpdateClaim pvc/default/data").gets(d.step.Action.Claim, nil).ends()
		d.starts().ends()
	})
	t.Run("P2 a tenant writes the name of another provisioner onto the claim: that one's deleter has deleted nothing", func(t *testing.T) {
		d := provisioned(t, nil, InProgress(time.Minute)).ends()
		deleted := At("60", ProvisioningClaim(toOther))
		deleted.DeletionTimestamp = new(metav1.Unix(1, 0))
		d.state.Observe(deleted)
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, "other.example.com", d.step.Action.Hook)
		d.gets(nil, nil).says("P2 UpdateClaim pvc/default/data").gets(d.step.Action.Claim, nil).ends()
		assert.Contains(t, d.step.Next, DataKey)
		d.starts().isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, Own, d.step.Action.Hook)
		d.gets(nil, nil).ends()
		d.starts().ends()
	})
}

// A tenant writes P2's finalizer onto a claim after the volume that was made for it was given to another one, and went.
func TestP2WhatWasMadeHasBeenGivenToAnother(t *testing.T) {
	leaving := ProvisioningClaim(ClaimBeingDeleted)
	given, retained := RefersTo("shop", "b", "uid-b"), WithPolicy(corev1.PersistentVolumeReclaimRetain)
	begins := func(t *testing.T, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *talk {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), claim, KnownVolume("a", OfClass("fast"), BoundToClaim, VolumeNote(BoundBy, "yes"), InPhase(corev1.VolumeBound)))
		return d.comesAndGoes(volume).starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
	}
	for name, claim := range map[string]*corev1.PersistentVolumeClaim{
		"the claim is deleted":  leaving,
		"it has another volume": ProvisioningClaim(BoundTo("a")),
		"no deleter is registered": ProvisioningClaim(ClaimBeingDeleted, func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[storageclass.ProvisionerAnnotation] = "none.example.com"
		}),
	} {
		t.Run("P2 X2 it was retained, "+name, func(t *testing.T) {
			d := begins(t, claim, KnownVolume(OwnKey.Name, given, retained)).says("P2 UpdateClaim pvc/default/data")
			assert.NotContains(t, d.step.Action.Claim.Finalizers, decision.ProvisioningFinalizer)
			assert.Len(t, d.step.Action.Events, 1)
			assert.Equal(t, decision.EventProvisioningCleanup, d.step.Action.Events[0].Reason)
		})
	}
	t.Run("P2 R8 it was retained after its deleter had failed, and its finalizers were taken off", func(t *testing.T) {
		failed := KnownVolume(OwnKey.Name, given, retained, BeingDeleted, VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"controller-1","token":5}`), VolumeFinalizers(reclaim.AnnouncementFinalizer))
		begins(t, leaving, failed).says("P2 UpdateClaim pvc/default/data")
	})
	for name, to := range map[string]VolumeEdit{"": given, ", reserved for the name of another": RefersTo("shop", "b", "")} {
		t.Run("P2 X3 it was retained"+name+", and the claim is to be provisioned for again", func(t *testing.T) {
			d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).comesAndGoes(KnownVolume(OwnKey.Name, to, retained))
			d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
			assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
		})
	}
	for name, volume := range map[string]*corev1.PersistentVolume{
		"it was reclaimed":              KnownVolume(OwnKey.Name, given, BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimDelete), VolumeFinalizers(reclaim.AnnouncementFinalizer), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"controller-1","token":5,"done":true}`)),
		"it was the claim's own":        KnownVolume(OwnKey.Name, BoundToClaim, retained),
		"it was reserved for the claim": KnownVolume(OwnKey.Name, PreBound, retained),
		"it was nobody's":               KnownVolume(OwnKey.Name, retained),
	} {
		t.Run("P2 "+name+": what may have been made since is deleted", func(t *testing.T) {
			begins(t, leaving, volume).announcesUnstored()
		})
	}
}

// P2, X2: the reply to storing a volume is lost, and so is the read after it. The provisioner is called again, and fails; then the claim is gone. A volume may
// have stood for what was made before that call, and been retained.
func TestP2AVolumeThatMayHaveStoodForWhatWasMadeBefore(t *testing.T) {
	for name, again := range map[string]error{"fails": ErrBroken, "is at work": InProgress(time.Minute)} {
		t.Run("P2 X2 its provisioner "+name, func(t *testing.T) {
			d := provisioned(t, MadeVolume(), nil).says("P2 CreateVolume pv/pvc-uid-1").gets(nil, ErrConnection)
			d.says("B6 Read pv/pvc-uid-1").gets(nil, ErrConnection).starts()
			d.says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
			d.says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, again).ends()
			d.state.ObserveDeleted(d.state.Known(DataKey))
			d.starts()
			for !d.step.Done {
				require.NotEqual(t, decision.RunDeleter, d.step.Action.Kind)
				d.gets(nil, ErrNotFound)
			}
			assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed")
		})
	}
}

// Rh, X8: what was made for the former claim of a name cannot be deleted, while others wait for a slot. The claim that has the name now is provisioned all
// the same, and neither deleter nor provisioner is called again before it is time.
func TestRhALeftoverThatStaysBesideOthersThatWait(t *testing.T) {
	for name, answer := range map[string]error{"it goes on": InProgress(time.Minute), "it fails": ErrBroken} {
		t.Run("Rh X8 "+name, func(t *testing.T) {
			d := newTalk(t, withTwo(), DataKey, ClassOf("fast", Own), ProvisioningClaim())
			for i := range 6 { // five of another namespace run, and one waits
				other := ProvisioningClaim(Named(fmt.Sprint("b", i)), OfUID(types.UID(fmt.Sprint("uid-b", i))))
				other.Namespace = "b"
				d.state.Observe(other)
				step := reads(t, d.state, d.state.Start(obj.KeyOf(other)), obj.KeyOf(other), other)
				require.Equal(t, i == 5, step.Done, "%s", step.Action)
			}
			d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, InProgress(time.Minute)).ends()
			d.state.ObserveDeleted(d.state.Known(DataKey))
			d.state.Observe(At("60", ProvisioningClaim(OfUID("uid-2"))))
			d.starts().says("P2 Read pvc/default/data").again().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, answer)
			d.says("P2 Read pv/pvc-uid-2").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-2").gets(nil, InProgress(time.Minute)).ends()
			require.NotContains(t, d.step.Next, DataKey)
			require.Positive(t, d.step.After)
		})
	}
}

// leftovers are those of n claims of one name, which somebody has let go while their provisioner was at work, and a claim that has the name now.
func leftovers(t *testing.T, n, slots int) *talk {
	t.Helper()
	d := &talk{T: t, state: engine.New(Hooked(), slots), key: DataKey, version: 1000}
	d.state.SetTime(time.Unix(1_700_000_000, 0))
	d.state.Observe(ClassOf("fast", Own))
	for i := range n {
		d.state.Observe(At(fmt.Sprint(100+i), ProvisioningClaim(OfUID(types.UID(fmt.Sprint("uid-", i))))))
		d.starts().plays(InProgress(time.Hour), InProgress(time.Hour))
		d.state.ObserveDeleted(d.state.Known(DataKey))
	}
	d.state.Observe(At("999", ProvisioningClaim(OfUID("uid-now"))))
	return d
}

// plays has the hooks of a sync give these answers until it ends, and returns which were called, in order.
func (d *talk) plays(deleter, provisioner error) (called []string) {
	d.Helper()
	for proven := false; !d.step.Done; {
		switch action := d.step.Action; {
		case action.RunsHook():
			if action.Kind == decision.RunDeleter {
				assert.True(d, proven, "P2 the claim is read after each call, which may have taken its time")
			}
			called, proven = append(called, string(action.Kind)+" "+action.Target().Name), false
		case action.Kind == decision.Read && action.Key == d.key:
			proven = true
		}
		d.answers(deleter, provisioner)
	}
	d.ends()
	return called
}

// answers answers the action of a step, as plays does.
func (d *talk) answers(deleter, provisioner error) {
	switch action := d.step.Action; {
	case action.Kind == decision.RunDeleter:
		d.gets(nil, deleter)
	case action.Kind == decision.RunProvisioner && provisioner == nil:
		d.gets(MadeVolume(func(v *corev1.PersistentVolume) { v.Name = action.Target().Name }), nil)
	case action.Kind == decision.RunProvisioner:
		d.gets(nil, provisioner)
	case action.Kind == decision.Read && d.state.Known(action.Key) == nil:
		d.gets(nil, ErrNotFound)
	case action.Kind == decision.Read:
		d.again()
	default:
		d.stored()
	}
}

// mayBeStored has it not be known whether the volume of the claim was stored, and the claim go after that sync, and come again.
func (d *talk) mayBeStored() *talk {
	d.starts()
	for !d.step.Done {
		if d.step.Action.Kind == decision.CreateVolume {
			d.gets(nil, ErrConnection)
		} else {
			d.answers(InProgress(time.Hour), nil)
		}
	}
	d.published = nil
	d.state.ObserveDeleted(d.state.Known(DataKey))
	d.state.Observe(At("2999", ProvisioningClaim(OfUID("uid-next"))))
	return d
}

// P2, X10: who takes the finalizer off one claim after another of a name stops neither the next claim of it, nor what is to be deleted.
func TestP2MoreIsLeftThanOneSyncDeletes(t *testing.T) {
	const many = 37
	for name, answer := range map[string]error{"whose deleters fail": ErrBroken, "whose deleters are at work": InProgress(time.Hour), "whose deleters refuse for good": Meaning(hooks.Refused)} {
		t.Run("P2 Rh the claim of the name is bound by the first sync, beside "+name, func(t *testing.T) {
			d := leftovers(t, many, 10)
			called := d.starts().plays(answer, nil)
			assert.Len(t, called, 5)
			assert.Equal(t, "RunProvisioner pvc-uid-now", called[4])
			assert.Equal(t, corev1.ClaimBound, d.state.Known(DataKey).(*corev1.PersistentVolumeClaim).Status.Phase)
		})
		t.Run("P2 each has its turn, "+name, func(t *testing.T) {
			d, tried := leftovers(t, many, 10), map[string]bool{}
			for range (many + 3) / 4 {
				for _, call := range d.starts().plays(answer, InProgress(time.Hour)) {
					tried[call] = true
				}
				assert.Positive(t, d.step.After)
			}
			assert.Len(t, tried, many+1)
		})
	}
	t.Run("P2 N W6 what failed is told once, until that is long ago, and tried ever more seldom", func(t *testing.T) {
		d := leftovers(t, many, 10)
		for round := range 6 {
			for range (many + 3) / 4 {
				d.starts().plays(ErrBroken, InProgress(time.Hour))
				assert.NotContains(t, d.step.Next, DataKey)
			}
			assert.Len(t, d.published, many*(1+round/3))
			assert.Equal(t, 2*time.Minute, d.step.After)
			if round == 2 {
				d.state.SetTime(time.Unix(1_700_000_000, 0).Add(51 * time.Minute))
			}
		}
	})
	t.Run("P2 where deleters succeed, the others follow at once", func(t *testing.T) {
		d := leftovers(t, many, 10)
		for left := many; left > 0; left -= 4 {
			require.Len(t, d.starts().plays(nil, InProgress(time.Hour)), min(left, 4)+1)
			require.Equal(t, left > 4, slices.Contains(d.step.Next, DataKey), "%d were left", left)
		}
		assert.Equal(t, []string{"RunProvisioner pvc-uid-now"}, d.starts().plays(nil, InProgress(time.Hour)))
	})
	t.Run("P2 what cannot be deleted has its turn too, to be told", func(t *testing.T) {
		d := leftovers(t, 10, 10).mayBeStored()
		for range 6 {
			d.starts().plays(InProgress(time.Hour), InProgress(time.Hour))
		}
		assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, d.published)
	})
	t.Run("P2 and is not taken for told by a sync that fails", func(t *testing.T) {
		d := leftovers(t, 0, 10).mayBeStored().starts()
		d.says("P2 Read pv/pvc-uid-next").gets(nil, ErrBroken)
		require.ErrorIs(t, d.step.Err, ErrBroken)
		d.starts().plays(nil, InProgress(time.Hour))
		d.starts().plays(nil, InProgress(time.Hour))
		assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, d.published)
	})
	t.Run("P2 Rh a sync that finds no slot keeps its turn", func(t *testing.T) {
		d := leftovers(t, 6, 1)
		d.state.Observe(MadeByOwn(RefersTo("default", "logs", "uid-2")))
		e := &talk{T: t, state: d.state, key: obj.VolumeKey("a"), version: 2000}
		e.starts().says("R8 UpdateVolume pv/a")
		d.starts().says("P2 Read pvc/default/data").again()
		first := d.step.Action.Key.Name
		d.gets(nil, ErrNotFound).ends()
		e.gets(nil, ErrBroken)
		assert.Contains(t, e.step.Next, DataKey)
		assert.Equal(t, "RunDeleter "+first, d.starts().plays(ErrBroken, InProgress(time.Hour))[0])
	})
}

// P2, X2: what came of storing the volume is not known, or there was one: another controller has bound it, perhaps, and it was retained and is gone with its
// claim. What was made is not deleted as what was left behind, and that is told, once.
func TestP2AVolumeThatMayHaveStoodForWhatWasMade(t *testing.T) {
	for name, reply := range map[string]error{
		"the reply is lost": ErrConnection,
		"there was one":     apierrors.NewAlreadyExists(corev1.Resource("persistentvolumes"), OwnKey.Name),
	} {
		t.Run("P2 X2 "+name, func(t *testing.T) {
			d := provisioned(t, MadeVolume(), nil).says("P2 CreateVolume pv/pvc-uid-1").gets(nil, reply)
			d.state.ObserveDeleted(d.state.Known(DataKey))
			for range 3 {
				for !d.step.Done {
					require.NotEqual(t, decision.RunDeleter, d.step.Action.Kind)
					d.gets(nil, ErrNotFound)
				}
				d.starts()
			}
			assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, slices.DeleteFunc(d.published, func(event string) bool { return !strings.HasSuffix(event, "CleanupFailed") }))
		})
	}
}

// P2, X2: the answer of a provisioner was lost, and a person has made a volume of what it made, under another name. Once that is gone with its claim, it is no
// leftover, if the claim was Bound to it: it may have been retained.
func TestP2WhatAPersonHasMadeAVolumeOfIsNoLeftover(t *testing.T) {
	for name, bound := range map[string]bool{"the claim was Bound to it": true, "nobody has made one": false} {
		t.Run("P2 X2 "+name, func(t *testing.T) {
			d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
			d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, ErrConnection)
			claim := ProvisioningClaim()
			if bound {
				volume := At("60", KnownVolume("mine", RefersTo("default", "data", ""), WithPolicy(corev1.PersistentVolumeReclaimRetain)))
				d.state.Observe(volume)
				claim = At("61", ProvisioningClaim(BoundTo("mine")))
				d.state.Observe(claim)
				d.state.ObserveDeleted(volume)
			}
			d.state.ObserveDeleted(claim)
			deleted := false
			for d.starts(); !d.step.Done && !deleted; deleted = d.step.Action.Kind == decision.RunDeleter {
				d.gets(nil, ErrNotFound)
			}
			assert.Equal(t, !bound, deleted)
		})
	}
}

// P2, X2: a tenant writes an announcement onto a claim, so that it does not get what was made for it. A person gives that to another claim, and then writes the
// first one's UID into it again. It is not deleted as if nobody had used it.
func TestP2WhatAnotherClaimHadIsNotMadeAnew(t *testing.T) {
	announced := ProvisioningClaim(ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":1,"seconds":1,"done":true}`))
	made := func(version string, claim VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, MadeVolume(claim, VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes"), DeletedPolicy, InPhase(corev1.VolumeBound)))
		volume.UID = "uid-v"
		return volume
	}
	again := made("2", BoundToClaim)
	again.UID = "uid-again"
	for had, anew := range map[string]bool{"it was the claim's alone": true, "another claim had it": false, "another claim had it, and it is made again": false, "that is Lost by then": false} {
		t.Run("P2 X2 "+had, func(t *testing.T) {
			d := newTalk(t, withTwo(), DataKey, ClassOf("fast", Own), announced)
			d.state.Outwait(DataKey)
			another := made("1", RefersToOther)
			bound := At("1", KnownClaim(BoundTo(OwnKey.Name), func(c *corev1.PersistentVolumeClaim) {
				c.Namespace, c.Name, c.UID = another.Spec.ClaimRef.Namespace, another.Spec.ClaimRef.Name, another.Spec.ClaimRef.UID
			}))
			if !anew {
				d.state.Observe(another)
			}
			switch had {
			case "another claim had it, and it is made again":
				d.state.Observe(bound)
				d.state.Observe(again)
			case "that is Lost by then":
				d.state.Observe(bound)
				d.state.ObserveDeleted(another)
				lost := At("3", bound.DeepCopy())
				lost.Status.Phase = corev1.ClaimLost
				d.state.Observe(lost)
				d.state.Observe(again)
			default:
				d.state.Observe(made("2", BoundToClaim))
			}
			d.state.Outwait(DataKey)
			deleted := false
			for d.starts(); !d.step.Done && !deleted; deleted = d.step.Action.Kind == decision.DeleteVolume {
				if d.step.Action.Kind == decision.Read {
					d.again()
				} else {
					d.stored()
				}
			}
			assert.Equal(t, anew, deleted)
		})
	}
}

// P2, X3: the same, and a person gives the volume to another claim while it is being deleted as never used. That claim has it until it goes, and the storage
// stays: it is not made anew for the first one.
func TestP2WhatIsGivenToAnotherWhileItIsDeletedIsNotMadeAnew(t *testing.T) {
	for name, anew := range map[string]bool{"it is given to nobody": true, "it is given to another": false} {
		t.Run("P2 X3 "+name, func(t *testing.T) {
			announced := ProvisioningClaim(ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":1,"seconds":1,"done":true}`))
			made := At("2", MadeVolume(BoundToClaim, VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes"), WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(VolumeProtection)))
			made.UID = "uid-v"
			class := ClassOf("fast", Own, func(class *storagev1.StorageClass) { class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) })
			d := newTalk(t, withTwo(), DataKey, class, announced, made)
			d.state.Outwait(DataKey)
			goes := func() (last decision.ActionKind) {
				for ; !d.step.Done && d.step.Action.Kind != decision.DeleteVolume && d.step.Action.Kind != decision.RunProvisioner; last = d.step.Action.Kind {
					switch {
					case d.step.Action.Kind == decision.Read && d.state.Known(d.step.Action.Key) == nil:
						d.gets(nil, ErrNotFound)
					case d.step.Action.Kind == decision.Read:
						d.again()
					default:
						d.stored()
					}
				}
				return last
			}
			d.starts()
			goes()
			require.Equal(t, decision.DeleteVolume, d.step.Action.Kind, "%s", d.step.Action)
			leaving := At("300", made.DeepCopy())
			BeingDeleted(leaving)
			for d.gets(leaving, nil); d.step.Action.Kind == decision.Read; {
				if d.step.Action.Key == DataKey {
					d.again()
				} else {
					d.gets(leaving, nil)
				}
			}
			d.says("P2 UpdateVolume pv/pvc-uid-1")
			last := At("301", leaving.DeepCopy())
			if !anew {
				RefersToOther(last)
			}
			d.state.Observe(last)
			d.gets(nil, ErrConflict)
			d.state.ObserveDeleted(last)
			for range 3 {
				if d.step.Done {
					d.starts()
				}
				goes()
			}
			assert.Equal(t, anew, !d.step.Done && d.step.Action.Kind == decision.RunProvisioner, "%s", d.step.Action)
		})
	}
}

// P2: what was stored is deleted, for its tenant has written an announcement onto the claim, and made anew. The claim goes, without its finalizer, before the
// provisioner answers: what it made has no volume that stands for it, and is deleted. Where an earlier volume stood for it, that one's policy decides.
func TestP2WhatIsMadeAnewForAClaimThatGoes(t *testing.T) {
	announced := ProvisioningClaim(ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":1,"seconds":1,"done":true}`))
	stored := MadeVolume(BoundToClaim, VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes"), DeletedPolicy, InPhase(corev1.VolumePending))
	stored.UID, stored.ResourceVersion = "uid-v", "2"
	for name, before := range map[string]bool{"no other": false, "an earlier one was seen": true} {
		t.Run("P2 X2 "+name, func(t *testing.T) {
			d := newTalk(t, withTwo(), DataKey, ClassOf("fast", Own), announced)
			if before {
				earlier := stored.DeepCopy()
				earlier.UID = "uid-earlier"
				d.state.Observe(earlier)
				d.state.ObserveDeleted(earlier)
			}
			d.state.Observe(stored)
			d.state.Outwait(DataKey)
			d.starts()
			for d.step.Action.Kind != decision.DeleteVolume {
				if d.step.Action.Kind == decision.Read {
					d.again()
				} else {
					d.stored()
				}
			}
			d.gets(stored, nil)
			for d.step.Action.Kind != decision.RunProvisioner {
				require.False(t, d.step.Done, "%s", d.step.Action)
				switch {
				case d.step.Action.Key == OwnKey:
					d.gets(nil, ErrNotFound)
				case d.step.Action.Kind == decision.Read:
					d.again()
				default:
					d.stored()
				}
			}
			d.state.ObserveDeleted(d.state.Known(DataKey))
			d.gets(MadeVolume(), nil)
			for !d.step.Done && d.step.Action.Kind == decision.Read {
				d.gets(nil, ErrNotFound)
			}
			assert.Equal(t, !before, d.step.Action.Kind == decision.RunDeleter, "%s", d.step.Action)
		})
	}
}

// P2, W8, X2: a provisioner is at work, or has failed, when another controller stores the volume and binds it. Then the server goes back to before the claim was
// made. That there is neither claim nor volume does not say that nobody has used the storage: it stays, and that is told. So it is without the
// notice, where the revisions go on, if the claim was seen Bound.
func TestP2WhatAnotherHasStoredBeforeTheServerWentBack(t *testing.T) {
	used := ProvisioningClaim(BoundTo("pvc-uid-1"))
	for name, test := range map[string]struct {
		before func(*engine.State)
		told   bool
	}{
		"W8 the notice comes": {func(state *engine.State) { state.ObserveRestore() }, true},
		"the claim is seen":   {func(state *engine.State) { state.Observe(At("90", used)) }, false},
		"W8 both": {func(state *engine.State) {
			state.Observe(At("90", used))
			state.ObserveRestore()
		}, false},
	} {
		for when, answer := range map[string]error{"while it is at work": nil, "after it was at work": InProgress(time.Minute), "after it failed": ErrBroken} {
			t.Run("P2 X2 "+name+" "+when, func(t *testing.T) {
				d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
				d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
				if answer != nil {
					d.gets(nil, answer)
				}
				test.before(d.state)
				if answer == nil {
					d.gets(nil, ErrBroken)
				}
				d.state.OutwaitCalls()
				for range 3 {
					if d.step.Done {
						d.starts()
					}
					for !d.step.Done {
						require.NotEqual(t, decision.RunDeleter, d.step.Action.Kind, "%s", d.step.Action)
						d.gets(nil, ErrNotFound)
					}
				}
				told := slices.Contains(d.published, "Warning ProvisioningCleanupFailed")
				assert.Equal(t, test.told, told, "%s", d.published)
			})
		}
	}
}

// P2, X2: a person makes a volume of what a provisioner has made, while it is at work. The claim goes before it is bound to that.
func TestP2WhatAPersonHasReservedForAClaimThatGoes(t *testing.T) {
	for name, reserved := range map[string]*corev1.PersistentVolume{
		"by name":   KnownVolume("a", OfClass("fast"), RefersTo("default", "data", "")),
		"by UID":    KnownVolume("a", OfClass("fast"), RefersTo("default", "data", "uid-1")),
		"too small": KnownVolume("a", OfClass("fast"), RefersTo("default", "data", ""), Sized("1")),
	} {
		for left, leaves := range map[string]func(*talk){
			"it is being deleted": func(d *talk) { d.state.Observe(At("60", ProvisioningClaim(ClaimBeingDeleted))) },
			"it is gone":          func(d *talk) { d.state.ObserveDeleted(ProvisioningClaim()) },
		} {
			t.Run("P2 X2 "+name+", "+left, func(t *testing.T) {
				d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
				d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
				d.state.Observe(reserved)
				leaves(d)
				d.gets(nil, ErrBroken)
				for range 3 {
					for !d.step.Done {
						require.False(t, d.step.Action.Kind == decision.RunDeleter || d.step.Action.Announces(), "%s", d.step.Action)
						switch claim := d.state.Known(DataKey); {
						case d.step.Action.Writes():
							d.stored()
						case d.step.Action.Key == DataKey && claim != nil:
							d.gets(claim, nil)
						default:
							d.gets(nil, ErrNotFound)
						}
					}
					d.starts()
				}
				assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed")
			})
		}
	}
}

// goesUndeleted has the claim go. What was made for it stays, however often it is synced, and that is told.
func (d *talk) goesUndeleted(claim obj.Object) {
	d.Helper()
	d.state.ObserveDeleted(claim)
	for range 3 {
		for d.starts(); !d.step.Done; d.gets(nil, ErrNotFound) {
			require.NotEqual(d, decision.RunDeleter, d.step.Action.Kind)
		}
	}
	assert.Contains(d, d.published, "Warning ProvisioningCleanupFailed")
}

// P2, X2: likewise, and the provisioner has failed: the volume goes before the claim, or comes only then.
func TestP2WhatAPersonHadReservedForAClaim(t *testing.T) {
	reserved := KnownVolume("a", OfClass("fast"), RefersTo("default", "data", ""), Sized("1"))
	for _, way := range []string{"it goes first", "it comes later"} {
		t.Run("P2 X2 "+way, func(t *testing.T) {
			d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
			d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
			if way == "it goes first" {
				d.state.Observe(reserved)
			}
			d.gets(nil, ErrBroken)
			require.True(t, d.step.Done, "%s", d.step.Action)
			if way == "it goes first" {
				d.state.ObserveDeleted(reserved)
			} else {
				d.state.Observe(reserved)
			}
			d.goesUndeleted(ProvisioningClaim())
		})
	}
}

// P2, R8, X2: storage refuses a provisioner, for it has seen a larger token: another controller has been there, and may have stored and bound it.
func TestP2WhatHasSeenALargerTokenIsNoLeftover(t *testing.T) {
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	d.gets(nil, Meaning(hooks.StaleToken))
	d.goesUndeleted(ProvisioningClaim())
}

// P2, X2: a provisioner has made storage, and its answer is lost. A person makes a volume of that for the claim, which then is Bound to it. When the claim goes, what
// becomes of the storage is as the policy of that volume says: it is no leftover.
func TestP2WhatAPersonHasReservedForAClaim(t *testing.T) {
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(nil, ErrBroken)
	d.state.Observe(At("30", KnownVolume("a", OfClass("fast"), RefersTo("default", "data", "uid-1"), InPhase(corev1.VolumeBound))))
	bound := At("40", ProvisioningClaim(BoundTo("a")))
	d.state.Observe(bound)
	d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 UpdateClaim pvc/default/data")
	assert.NotContains(t, d.step.Action.Complete().Claim.Finalizers, decision.ProvisioningFinalizer)
	d.stored().ends()
	assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed", "which tells it")
	d.goesUndeleted(d.state.Known(DataKey))
}
