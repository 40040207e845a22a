package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// B1, X2, X3: a claim is deleted, and made again, while the first write of its binding waits (client-go's rate limit, a 429, a paused process). The
// volume may have data that is meant for its name, and it may be used by now: it is retained, and no other claim's, and that is told.
func TestB1TheClaimGoesWhileItsBindingIsBegun(t *testing.T) {
	for _, way := range []string{"reserved", "reserved, Released before", "reserved, the reply is lost", "reserved, Released before, the reply is lost", "named", "made again"} {
		for _, made := range []string{"made again later", "made again at once"} {
			t.Run("B1 X2 "+way+", "+made, func(t *testing.T) {
				cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}})
				make := func(object obj.Object) {
					_, err := cluster.Create(t.Context(), object)
					require.NoError(t, err)
				}
				claim := func() {
					make(bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) {
						if !strings.HasPrefix(way, "reserved") {
							c.Spec.VolumeName = "pv"
						}
					}))
				}
				volume := func() {
					volume := bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete))
					if strings.HasPrefix(way, "reserved") {
						PreBound(volume)
					}
					phase := corev1.PersistentVolumePhase("")
					if strings.Contains(way, "Released before") {
						phase = corev1.VolumeReleased
					}
					storeIn(t, cluster, volume, phase)
				}
				claim()
				if way == "made again" {
					volume()
					require.NoError(t, cluster.Settle(t.Context()))
					vanish(t, cluster, obj.VolumeKey("pv"))
				}
				require.NoError(t, cluster.Settle(t.Context()))
				volume()
				first := bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
				cluster.Client.Use(bindingtest.Before(1, first, func() {
					vanish(t, cluster, DataKey)
					if made == "made again at once" {
						claim()
					}
				}))
				if strings.HasSuffix(way, "the reply is lost") {
					cluster.Client.Use(bindingtest.LoseAnswer(1, first))
				}

				require.NoError(t, cluster.Settle(t.Context()))
				if made == "made again later" {
					claim()
					require.NoError(t, cluster.Settle(t.Context()))
				}
				assertRetained(t, cluster)
				assert.NotEqual(t, cluster.Claim("default", "data").UID, cluster.Volume("pv").Spec.ClaimRef.UID, "X3")

				reserved := cluster.Volume("pv") // as the event says
				reserved.Spec.ClaimRef.UID = ""
				_, err := cluster.Update(t.Context(), reserved)
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
				assertBound(t, cluster)
			})
		}
	}
}

// B1, X2: the first write of a binding gets no answer, and takes effect only when its claim is gone and another one is to have the volume, of that name or of
// another tenant. What a person has on the volume is not reclaimed for the first claim, which never had it.
func TestB1AWriteIsLateAndAnotherClaimIsToHaveTheVolume(t *testing.T) {
	for name, second := range map[string]*corev1.PersistentVolumeClaim{
		"reserved, made again": bindingtest.Claim("default", "data", "1Gi"),
		"named, made again":    bindingtest.Claim("default", "data", "1Gi", Naming("pv")),
		"named by another":     bindingtest.Claim("bank", "data", "1Gi", Naming("pv")),
	} {
		for _, answered := range []string{"", ", and the second write gets no answer"} {
			t.Run("B1 X2 "+name+answered, func(t *testing.T) {
				first, volume := bindingtest.Claim("default", "data", "1Gi"), bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete))
				if second.Spec.VolumeName == "" {
					PreBound(volume)
				}
				first.Spec.VolumeName = second.Spec.VolumeName
				cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}}, first, volume)
				var late func() error
				writes := 0
				cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
					if !bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)(call) {
						return do()
					}
					switch writes++; writes {
					case 1:
						late = do
						vanish(t, cluster, DataKey)
						_, err := cluster.Create(t.Context(), second.DeepCopy())
						assert.NoError(t, err)
						return bindingtest.ErrAnswerLost
					case 2:
						assert.NoError(t, late())
						if answered != "" {
							return bindingtest.ErrAnswerLost
						}
					}
					return do()
				})
				for range 5 {
					_ = cluster.Settle(t.Context())
					require.NoError(t, cluster.AdvanceClock(t.Context()))
				}
				require.Greater(t, writes, 2)
				assertRetained(t, cluster)
			})
		}
	}
}

// assertRetained asserts that the volume pv is Released, or Failed as it was, and retained, and that this was told once.
func assertRetained(t *testing.T, cluster *Driven) {
	t.Helper()
	volume := cluster.Volume("pv")
	assert.Contains(t, []corev1.PersistentVolumePhase{corev1.VolumeReleased, corev1.VolumeFailed}, volume.Status.Phase)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy)
	told := 0
	for _, event := range cluster.Events() {
		if event.Reason == decision.EventVolumeMismatch && strings.Contains(event.Message, "its reclaim policy is Retain now") {
			told++
		}
	}
	assert.Equal(t, 1, told, "B1")
}

// B1, M2: the owner of what is made again goes before B2. The volume is no other's, and retained.
func TestB1AnOwnerGoesWhileWhatIsMadeAgainIsBoundToIt(t *testing.T) {
	first, owner := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), At("11", KnownClaim(BoundTo("a")))
	d := newTalk(t, decision.Options{}, DataKey, first, owner)
	d.state.ObserveDeleted(first)
	lost, again := At("20", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), At("21", KnownVolume("a", InPhase(corev1.VolumePending), WithPolicy(corev1.PersistentVolumeReclaimDelete)))
	again.UID = "uid-again"
	d.state.Observe(lost)
	d.state.Observe(again)
	d.starts().says("B1 Read pvc/default/data").again().says("B1 UpdateVolume pv/a")
	d.state.ObserveDeleted(lost)
	d.stored().ends()

	d.key = AKey
	d.starts().says("V3 Read pvc/default/data").gets(nil, ErrNotFound)
	require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind))
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, d.step.Action.Volume.Spec.PersistentVolumeReclaimPolicy)
}

// never is a deleter that is not to be called.
type never struct{ t *testing.T }

func (n never) Delete(context.Context, hooks.ReclaimRequest) error {
	assert.Fail(n.t, "X2 its storage is deleted")
	return nil
}

// V3: what is noted of a binding that is begun says nothing of a volume that is Bound.
func TestV3ABoundVolumeIsReleased(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi", Naming("pv")))
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
	vanish(t, cluster, DataKey)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
}

// B1: what comes while a binding of a reserved volume is under way, and its claim was not seen to be Bound.
func TestB1WhatComesWhileItsBindingIsBegun(t *testing.T) {
	status := bindingtest.OnStatus(obj.KindClaim)
	again := func(t *testing.T, cluster *Driven) {
		vanish(t, cluster, DataKey)
		_, err := cluster.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi"))
		assert.NoError(t, err)
	}
	for name, test := range map[string]struct {
		volume func(*corev1.PersistentVolume)
		phase  corev1.PersistentVolumePhase // before
		when   bindingtest.Match
		comes  func(*testing.T, *Driven)
	}{
		"its claim goes with B4": {when: status, comes: again},
		"its claim is marked before B4, kept by a finalizer of others, and goes": {when: status, comes: func(t *testing.T, cluster *Driven) {
			claim := cluster.Claim("default", "data")
			claim.Finalizers = append(claim.Finalizers, "example.com/snapshot")
			_, err := cluster.Update(t.Context(), claim)
			assert.NoError(t, err)
			assert.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
		}},
		"its claim names another volume": {when: bindingtest.On(bindingtest.VerbUpdate, obj.KindClaim), volume: func(v *corev1.PersistentVolume) { v.Annotations[ProvisionedBy] = "example.com/once" }, comes: func(t *testing.T, cluster *Driven) {
			_, err := cluster.Create(t.Context(), bindingtest.Volume("free", "1Gi"))
			assert.NoError(t, err)
			claim := cluster.Claim("default", "data")
			claim.Spec.VolumeName = "free"
			_, err = cluster.Update(t.Context(), claim)
			assert.NoError(t, err)
		}},
		"it is deleted with its claim": {when: status, comes: func(t *testing.T, cluster *Driven) {
			assert.NoError(t, cluster.Delete(t.Context(), obj.VolumeKey("pv"), metav1.DeleteOptions{}))
			vanish(t, cluster, DataKey)
		}, volume: func(v *corev1.PersistentVolume) {
			v.Annotations[ProvisionedBy] = "example.com/once"
			v.Finalizers = []string{"example.com/keeps"}
		}},
		"it was Released before, and its reclaiming waits for a driver": {phase: corev1.VolumeReleased, when: bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume), comes: again, volume: func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: "pv"}}
		}},
	} {
		t.Run("B1 "+name, func(t *testing.T) {
			cluster := NewDrivenWith(bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}},
				bindingtest.Claim("default", "data", "1Gi"))
			require.NoError(t, cluster.Settle(t.Context()))
			volume := bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), PreBound)
			volume.Annotations = map[string]string{}
			if test.volume != nil {
				test.volume(volume)
			}
			storeIn(t, cluster, volume, test.phase)
			cluster.Client.Use(bindingtest.Before(1, test.when, func() { test.comes(t, cluster) }))
			if test.phase != "" {
				cluster.Client.Use(bindingtest.LoseAnswer(1, test.when))
			}
			require.NoError(t, cluster.Settle(t.Context()))
			if claim := cluster.Claim("default", "data"); claim != nil && claim.DeletionTimestamp != nil {
				claim.Finalizers = nil
				_, err := cluster.Update(t.Context(), claim)
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
			}
			if name == "its claim names another volume" { // which frees this one, but for the name that the person wrote (V4)
				assert.Equal(t, DataKey, obj.ReferencedClaim(cluster.Volume("pv")))
				assert.Equal(t, corev1.PersistentVolumeReclaimRetain, cluster.Volume("pv").Spec.PersistentVolumeReclaimPolicy)
				return
			}
			assertRetained(t, cluster)
		})
	}
}

// storeIn stores a volume in this phase; "" for Pending.
func storeIn(t *testing.T, cluster *Driven, volume *corev1.PersistentVolume, in corev1.PersistentVolumePhase) {
	t.Helper()
	_, err := cluster.Create(t.Context(), volume)
	require.NoError(t, err)
	if in != "" {
		stored := cluster.Volume(volume.Name)
		stored.Status.Phase = in
		_, err = cluster.UpdateStatus(t.Context(), stored)
		require.NoError(t, err)
	}
}

// V3, X3: a controller begins a binding and is cut off. The claim is Bound, by another one or by its own last write, is used, and deleted. When it is back
// nothing shows it that the claim was Bound: what it noted of the binding gives that claim's data to nobody.
func TestV3AnotherHasGoneOnWithWhatWasBegun(t *testing.T) {
	for _, way := range []string{"reserved", "named"} {
		for name, cut := range map[string]bindingtest.Match{
			"after B1":        bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume),
			"after B3":        bindingtest.On(bindingtest.VerbUpdate, obj.KindClaim),
			"with B4's reply": bindingtest.OnStatus(obj.KindClaim),
		} {
			t.Run("V3 X3 "+way+", "+name, func(t *testing.T) {
				claim := bindingtest.Claim("default", "data", "1Gi")
				volume := bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain))
				if way == "named" {
					claim.Spec.VolumeName = "pv"
				} else {
					PreBound(volume)
				}
				cluster := NewDrivenWith(bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}}, claim)
				require.NoError(t, cluster.Settle(t.Context()))
				off := false
				cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
					switch {
					case off:
						return errors.New("cut off")
					case !cut(call):
						return do()
					}
					off = true
					cluster.Hold(obj.KindClaim, obj.KindVolume)
					_ = do()
					return bindingtest.ErrAnswerLost
				})
				storeIn(t, cluster, volume, corev1.VolumeReleased)
				_ = cluster.Settle(t.Context())
				require.True(t, off)
				known := cluster.Claim("default", "data")
				known.Status.Phase = corev1.ClaimPending // as its cache has it

				other := bindingtest.NewDriver(cluster.Server, bindingtest.DriverOptions{Name: "other"})
				require.NoError(t, other.Settle(t.Context()))
				assertBound(t, cluster)
				vanish(t, cluster, DataKey)
				require.NoError(t, other.Settle(t.Context()))
				require.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)

				stripped := cluster.Volume("pv") // so that its first write to it is not about that
				stripped.Finalizers = nil
				_, err := cluster.Update(t.Context(), stripped)
				require.NoError(t, err)
				off = false
				cluster.Controller.ObserveDeleted(known) // which lists anew
				cluster.Controller.Observe(cluster.Volume("pv"))
				_, _ = cluster.Controller.Sync(t.Context(), obj.VolumeKey("pv"))
				require.NoError(t, cluster.Settle(t.Context()))
				assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
				assert.Equal(t, known.UID, cluster.Volume("pv").Spec.ClaimRef.UID)
			})
		}
	}
}

// V3: the reply of B4 is lost, and the claim is gone before its controller is back, and before anybody else has Released the volume. The claim may have
// been Bound: the volume is Released for it, and not kept for its name.
func TestV3AClaimThatMayHaveBeenBound(t *testing.T) {
	cluster := NewDriven(bindingtest.Claim("default", "data", "1Gi"), bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain), PreBound))
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if !bindingtest.OnStatus(obj.KindClaim)(call) || cluster.Claim("default", "data").Status.Phase == corev1.ClaimBound {
			return do()
		}
		known := cluster.Claim("default", "data")
		assert.NoError(t, do())
		cluster.Hold(obj.KindClaim)
		vanish(t, cluster, DataKey)
		cluster.Controller.ObserveDeleted(known) // which lists anew
		return bindingtest.ErrAnswerLost
	})
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
}

// B1, X3: B4's reply says that the claim is Bound, and comes after an informer has shown its end, which did not. The claim had the volume: it is
// reclaimed as its policy says.
func TestB1AReplyThatComesAfterTheEnd(t *testing.T) {
	for _, made := range []string{"", "and is made again"} {
		t.Run("B1 X3 it is gone "+made, func(t *testing.T) {
			cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(func(context.Context, hooks.ReclaimRequest) error { return nil })}}},
				bindingtest.Claim("default", "data", "1Gi"), bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), PreBound))
			cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
				known := cluster.Claim("default", "data")
				err := do()
				if bindingtest.OnStatus(obj.KindClaim)(call) && known.Status.Phase != corev1.ClaimBound {
					cluster.Hold(obj.KindClaim)
					vanish(t, cluster, DataKey)
					cluster.Controller.ObserveDeleted(known) // which lists anew
					if made != "" {
						again, err := cluster.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi"))
						assert.NoError(t, err)
						cluster.Controller.Observe(again)
					}
				}
				return err
			})
			require.NoError(t, cluster.Settle(t.Context()))
			assert.Nil(t, cluster.Volume("pv"))
		})
	}
}

// B1, R2: a volume was retained for what was begun with it. A person looks at it, and gives it its policy back.
func TestB1APolicyThatIsSetAfterAll(t *testing.T) {
	deleted := 0
	deletes := Deletes(func(context.Context, hooks.ReclaimRequest) error { deleted++; return nil })
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": deletes}}},
		bindingtest.Claim("default", "data", "1Gi"), bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), PreBound))
	cluster.Client.Use(bindingtest.Before(1, bindingtest.OnStatus(obj.KindVolume), func() { vanish(t, cluster, DataKey) }))
	require.NoError(t, cluster.Settle(t.Context()))
	assertRetained(t, cluster)
	require.Zero(t, deleted)
	volume := cluster.Volume("pv")
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	_, err := cluster.Update(t.Context(), volume)
	require.NoError(t, err)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, 1, deleted)
	assert.Nil(t, cluster.Volume("pv"))
}

// W8: a restore that is noticed takes the volume back to where B1 had left it, and its claim is gone: what was noted of the binding holds.
func TestW8WhatWasBegunBeforeARestore(t *testing.T) {
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}},
		bindingtest.Claim("default", "data", "1Gi"), bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), PreBound))
	var backup *bindingtest.Server
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		switch {
		case backup == nil && bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)(call):
			err := do()
			backup = cluster.Snapshot()
			return err
		case cluster.Claim("default", "data") != nil && bindingtest.OnStatus(obj.KindVolume)(call):
			assert.NoError(t, do())
			cluster.Restore(backup)
			cluster.ObserveRestore()
			vanish(t, cluster, DataKey)
			return bindingtest.ErrAnswerLost
		}
		return do()
	})
	for range 5 {
		_ = cluster.Settle(t.Context())
		require.NoError(t, cluster.AdvanceClock(t.Context()))
	}
	require.NotNil(t, backup)
	assertRetained(t, cluster)
}

// W8: the backup has a claim from before it was bound. Where its volume is given back only at the second attempt, it gets no other one meanwhile.
func TestW8AClaimHasItsOwnVolumeAgain(t *testing.T) {
	for _, way := range []string{"it is given back", "it is gone", "it is given back, and its class provisions"} {
		t.Run("W8 "+way, func(t *testing.T) {
			provisions := way == "it is given back, and its class provisions"
			cluster := NewDriven(ClassOf("fast", "ext.example.com"), bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("fast"))))
			backup := cluster.Snapshot()
			make := func(name string) {
				_, err := cluster.Create(t.Context(), bindingtest.Volume(name, "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain), OfClass("fast")))
				require.NoError(t, err)
			}
			make("pv")
			if way != "it is gone" {
				backup = cluster.Snapshot()
			}
			require.NoError(t, cluster.Settle(t.Context()))
			assertBound(t, cluster)
			cluster.Restore(backup)
			if !provisions {
				make("another")
			}
			cluster.ObserveRestore()
			lists := 0
			cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
				if bindingtest.On(bindingtest.VerbList, obj.KindClaim)(call) && lists == 0 {
					lists++
					return errors.New("the list is from the past")
				}
				return do()
			})
			for range 5 {
				_ = cluster.Settle(t.Context())
				require.NoError(t, cluster.AdvanceClock(t.Context()))
			}
			want := "pv"
			if way == "it is gone" {
				want = "another"
			}
			assert.Equal(t, want, cluster.Claim("default", "data").Spec.VolumeName)
			if provisions {
				assert.NotContains(t, cluster.Claim("default", "data").Annotations, "volume.kubernetes.io/storage-provisioner", "nobody was asked for another one")
			}
			assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
		})
	}
}

// V3, X2: a person writes the UID of a claim into the claimRef of a volume with data, which the claim does not fit, and gives it its policy back.
// The claim never has it, and goes: the volume is retained.
func TestB1AClaimWhoseUIDWasWrittenByAPerson(t *testing.T) {
	for _, before := range []corev1.PersistentVolumePhase{corev1.VolumeReleased, corev1.VolumeFailed, corev1.VolumeAvailable} {
		testClaimOfAPerson(t, string(before), before, bindingtest.Claim("default", "data", "2Gi"))
		testClaimOfAPerson(t, string(before)+", its claim names it and is being deleted", before, bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Finalizers = "pv", []string{"example.com/tenant"}
		}))
	}
}

func testClaimOfAPerson(t *testing.T, name string, before corev1.PersistentVolumePhase, wanting *corev1.PersistentVolumeClaim) {
	t.Run("V3 X2 "+name, func(t *testing.T) {
		cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}})
		claim, err := cluster.Create(t.Context(), wanting)
		require.NoError(t, err)
		if len(wanting.Finalizers) > 0 {
			require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
		}
		_, err = cluster.Create(t.Context(), bindingtest.Volume("pv", "1Gi", boundBefore))
		require.NoError(t, err)
		volume := cluster.Volume("pv")
		if before == corev1.VolumeAvailable { // a person has made it free
			volume.Spec.ClaimRef, volume.Annotations = nil, nil
			_, err = cluster.Update(t.Context(), volume)
			require.NoError(t, err)
			volume = cluster.Volume("pv")
		}
		volume.Status.Phase = before
		_, err = cluster.UpdateStatus(t.Context(), volume)
		require.NoError(t, err)
		volume = cluster.Volume("pv")
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: claim.GetUID()}
		_, err = cluster.Update(t.Context(), volume)
		require.NoError(t, err)
		require.NoError(t, cluster.Settle(t.Context()))
		require.NotEqual(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)

		if last := cluster.Claim("default", "data"); last.DeletionTimestamp != nil {
			last.Finalizers = nil
			_, err = cluster.Update(t.Context(), last)
			require.NoError(t, err)
		} else {
			vanish(t, cluster, DataKey)
		}
		require.NoError(t, cluster.Settle(t.Context()))
		assertRetained(t, cluster)
	})
}

// B1, X2: the claim's own sync makes a volume Bound that a person gave to it by UID. The claim is read live before, and what is begun is noted.
func TestB1AClaimIsReadBeforeWhatAPersonGaveItIsBound(t *testing.T) {
	given := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), WithPolicy(corev1.PersistentVolumeReclaimDelete))
	newTalk(t, decision.Options{}, DataKey, given, KnownClaim()).starts().says("B1 Read pvc/default/data").gets(nil, ErrNotFound).ends()

	d := newTalk(t, decision.Options{}, DataKey, given, KnownClaim()).starts().says("B1 Read pvc/default/data").again().says("B2 UpdateVolumeStatus pv/a").stored().says("B3 UpdateClaim pvc/default/data")
	d.state.ObserveDeleted(d.state.Known(DataKey))
	d.gets(nil, ErrNotFound).says("B6 Read pvc/default/data").gets(nil, ErrNotFound).ends()
	d.key = AKey
	d.starts().says("V3 Read pvc/default/data").gets(nil, ErrNotFound)
	require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind))
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, d.step.Action.Volume.Spec.PersistentVolumeReclaimPolicy)
}

// B1, R8, X2: a deleter of before has failed, and its announcement stands, when a person gives the volume to a claim that waits. That one goes: the volume is
// retained, and the deleter not called for it.
func TestB1AVolumeIsRescuedFromItsDeleter(t *testing.T) {
	for name, announced := range map[string]string{"its deleter has failed": `{"by":"me","token":9}`, "nobody can read it": "{}"} {
		t.Run("B1 X2 "+name, func(t *testing.T) {
			given := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed), DeletedPolicy, OnHostPath, VolumeNote(reclaim.AnnouncementAnnotation, announced))
			d := newTalk(t, Hooked(), AKey, given, KnownClaim(Requesting("20Gi")))
			d.starts().says("B1 Read pvc/default/data").again()
			d.state.ObserveDeleted(d.state.Known(DataKey))
			d.ends().retainsInVain()
		})
	}
}

// retainsInVain asserts that the volume of the talk is retained once its claim is read, and gone.
func (d *talk) retainsInVain() {
	d.Helper()
	for d.starts(); !d.step.Done && d.step.Action.Kind == decision.Read; {
		d.gets(nil, ErrNotFound)
	}
	require.Equal(d, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
	assert.Equal(d, corev1.PersistentVolumeReclaimRetain, d.step.Action.Complete().Volume.Spec.PersistentVolumeReclaimPolicy)
}

// B1, X2: a person writes the UID of a claim over that of another one: of a claim that waits, and goes; of none that there is; or of one that was Bound to the
// volume before anything showed the edit, which has the data.
func TestB1AUIDIsWrittenOverAnother(t *testing.T) {
	was := At("5", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound), DeletedPolicy, OnHostPath, VolumeNote(BoundBy, "yes")))
	edited := At("6", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy, OnHostPath, VolumeNote(BoundBy, "yes")))
	for name, claim := range map[string]*corev1.PersistentVolumeClaim{"the claim goes": KnownClaim(Requesting("20Gi")), "there is none": nil} {
		t.Run("B1 X2 "+name, func(t *testing.T) {
			d := newTalk(t, Hooked(), AKey, was)
			if claim != nil {
				d.state.Observe(claim)
			}
			d.state.Observe(edited)
			if claim != nil {
				d.starts().ends()
				d.state.ObserveDeleted(claim)
			}
			d.retainsInVain()
		})
	}
	for _, first := range []string{"the volume", "the claim"} {
		t.Run("V3 "+first+" is shown first, and the claim is Bound to it", func(t *testing.T) {
			d, bound := newTalk(t, Hooked(), AKey, was), KnownClaim(BoundTo("a"))
			for _, object := range map[string][]obj.Object{"the volume": {edited, bound}, "the claim": {bound, edited}}[first] {
				d.state.Observe(object)
			}
			leaving := At("9", KnownClaim(BoundTo("a"), ClaimBeingDeleted))
			d.state.Observe(leaving)
			d.state.ObserveDeleted(leaving)
			d.starts().says("V3 Read pvc/default/data").gets(nil, ErrNotFound)
			assert.Equal(t, corev1.VolumeReleased, d.step.Action.Complete().Volume.Status.Phase)
		})
	}
}

// B1, X2: the UID of another claim is in the claimRef of a volume that a claim is Bound to by its status: the volume was made again so, or the UID written into that, or
// it was there before the controller started.
func TestB1AnotherUIDIsInTheClaimRefOfABoundClaim(t *testing.T) {
	claim, lost, slip := KnownClaim(BoundTo("a")), At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), RefersTo("default", "data", "uid-slip")
	was := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy, OnHostPath))
	third := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: "uid-third"}}
	next := KnownClaim(Naming("a"), Named("other"), OfUID("uid-earlier"))
	again := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", append([]VolumeEdit{DeletedPolicy, OnHostPath, InPhase(corev1.VolumePending), sameAs(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: "uid-again"}})}, edits...)...))
	}
	for name, objects := range map[string][]obj.Object{
		"it is made again with a slip":                    {was, claim, again("20", slip)},
		"it is made again without a UID, and then edited": {was, claim, again("20", RefersTo("default", "data", "")), again("21", slip)},
		"it is made again without claimRef, and edited":   {was, claim, again("20"), again("21", slip)},
		"the claim is Lost before it is made again":       {was, claim, nil, lost, again("20", RefersTo("default", "other", "uid-slip"))},
		"a slip in its UID comes before that":             {was, claim, again("6", slip, sameAs(was)), nil, lost, again("20", RefersTo("default", "other", "uid-earlier"))},
		"a late cache shows the claim as it was before":   {was, KnownClaim(), nil, again("20", RefersTo("default", "other", "uid-slip"))},
		"the claim is Lost before a UID is written":       {was, claim, again("20", RefersTo("default", "other", "")), lost, again("21", slip)},
		"and Pending, by its tenant":                      {was, claim, nil, At("30", KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending))), again("20", slip)},
		"another one is written into it before that":      {was, claim, again("6", RefersTo("default", "other", "uid-earlier"), sameAs(was)), lost, nil, again("20", RefersTo("default", "other", "uid-earlier"))},
		"and that one is being bound to it":               {was, claim, next, again("6", RefersTo("default", "other", "uid-earlier"), sameAs(was)), lost, nil, again("20", RefersTo("default", "other", "uid-earlier"))},
		"and that one goes, behind a slip in its name":    {was, claim, next, again("6", RefersTo("default", "ohter", "uid-earlier"), sameAs(was)), lost, &corev1.Pod{}, nil, again("20", RefersTo("default", "other", "uid-slip"))},
		"and what is known of the last one is forgotten":  {was, claim, nil, lost, &corev1.Node{}, again("20", RefersTo("default", "other", "uid-slip"))},
		"it is made again so twice":                       {was, claim, nil, again("20", RefersTo("default", "other", "uid-slip")), lost, again("25", RefersTo("default", "other", "uid-slip"), sameAs(third))},
		"so it is when it starts, the claims come first":  {claim, again("20", slip)},
		"so it is when it starts, the volumes come first": {again("20", slip), claim},
		"the claim is Lost by then, in a later cache":     {claim, again("20", slip), lost},
		"and Bound, as the claim of the name in claimRef": {was, claim, again("20", RefersTo("default", "other", "uid-slip"))},
	} {
		t.Run("B1 X2 "+name, func(t *testing.T) {
			d := newTalk(t, Hooked(), AKey)
			for _, object := range append(objects, lost) {
				switch object.(type) {
				case nil:
					d.state.ObserveDeleted(was)
				case *corev1.Node:
					manyOthersGo(d.state)
				case *corev1.Pod:
					d.state.ObserveDeleted(next)
				default:
					d.state.Observe(object)
				}
			}
			d.state.ObserveDeleted(next)
			for d.starts(); !d.step.Done && d.step.Action.Kind == decision.Read; {
				if d.step.Action.Key == DataKey {
					d.again()
				} else {
					d.gets(nil, ErrNotFound)
				}
			}
			require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, d.step.Action.Complete().Volume.Spec.PersistentVolumeReclaimPolicy)
		})
	}
}

// V4, M2: a volume is made again under a claim that was Bound to it, with the whole claimRef of one that has another volume. It is nobody else's.
func TestV4WhatIsMadeAgainForAClaimThatHasAnother(t *testing.T) {
	retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
	was := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), retain))
	again := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumePending), VolumeNote(BoundBy, "yes"), retain))
	again.UID, again.Spec.ClaimRef.ResourceVersion = "uid-again", "4"
	ref := again.Spec.ClaimRef
	other := At("9", KnownClaim(BoundTo("b"), Named(ref.Name), OfUID(ref.UID), func(c *corev1.PersistentVolumeClaim) { c.Namespace = ref.Namespace }))
	its := At("8", KnownVolume("b", RefersToOther, InPhase(corev1.VolumeBound)))
	its.UID = "uid-b"
	d := newTalk(t, Hooked(), AKey, other, its, was, At("6", KnownClaim(BoundTo("a"))))
	d.state.ObserveDeleted(was)
	d.state.Observe(At("7", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))))
	d.state.Observe(again)
	d.took(reads(t, d.state, d.starts().step, AKey, again, other, its))
	require.Equal(t, "V4 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
	kept := d.step.Action.Complete().Volume.Spec.ClaimRef
	require.NotNil(t, kept)
	assert.Equal(t, obj.ClaimKey(ref.Namespace, ref.Name), obj.ClaimKey(kept.Namespace, kept.Name))
}

// sameAs gives a volume the UID of another version of it.
func sameAs(other *corev1.PersistentVolume) VolumeEdit {
	return func(volume *corev1.PersistentVolume) { volume.UID = other.UID }
}

// B1: who sets another policy once a volume was retained for that wants it to be carried out, though the claim stays Bound by its status, and is changed.
func TestB1APolicyIsSetOnceAnotherUIDWasSeen(t *testing.T) {
	slip := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", append(edits, RefersTo("default", "other", "uid-slip"), InPhase(corev1.VolumeReleased), OnHostPath)...))
	}
	d := newTalk(t, Hooked(), AKey, At("10", KnownClaim(BoundTo("a"))), slip("20", WithPolicy(corev1.PersistentVolumeReclaimRetain)))
	for d.starts(); !d.step.Done; {
		d.gets(nil, ErrNotFound)
	}
	d.state.Observe(slip("21", DeletedPolicy))
	d.state.Observe(At("22", KnownClaim(BoundTo("a"), ClaimNote("of", "its tenant"))))
	for d.starts(); !d.step.Done && d.step.Action.Kind == decision.Read; {
		d.gets(nil, ErrNotFound)
	}
	assert.NotEqual(t, "B1", d.step.Action.Rule, "%s", d.step.Action)
}

// B1: an informer has not shown the claim yet that a volume is given to, while the claim that had it is Bound. The volume waits for that, and is not retained.
func TestB1AClaimThatIsShownLateIsNoneThatIsGone(t *testing.T) {
	of := KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a"))
	was := KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound), DeletedPolicy)
	d := newTalk(t, Hooked(), AKey, of, At("5", was), At("6", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy)))
	d.starts().says("B1 Read pvc/default/data").gets(KnownClaim(), nil).ends()
}

// B1, X10: a tenant names a volume that is free for anybody, keeps the binding from its end, and goes. The volume is not retained for that: else a quota of one
// claim would take all that are free out of use.
func TestB1AFreeVolumeIsNotRetainedForWhoNamesIt(t *testing.T) {
	recycler := &scrubber{}
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{Recyclers: map[string]hooks.Recycler{"hostPath": recycler}}},
		bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRecycle)))
	require.NoError(t, cluster.Settle(t.Context()))
	require.Equal(t, corev1.VolumeAvailable, cluster.Volume("pv").Status.Phase)
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if bindingtest.On(bindingtest.VerbUpdate, obj.KindClaim)(call) {
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), "data", nil)
		}
		return do()
	})
	_, err := cluster.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi", Naming("pv")))
	require.NoError(t, err)
	_ = cluster.Settle(t.Context())
	require.Equal(t, corev1.VolumeBound, cluster.Volume("pv").Status.Phase)
	vanish(t, cluster, DataKey)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, 1, recycler.calls)
	assert.Equal(t, corev1.VolumeAvailable, cluster.Volume("pv").Status.Phase)
	assert.Equal(t, corev1.PersistentVolumeReclaimRecycle, cluster.Volume("pv").Spec.PersistentVolumeReclaimPolicy)
}

// scrubber is a recycler that succeeds.
type scrubber struct{ calls int }

func (s *scrubber) Recycle(context.Context, hooks.ReclaimRequest) error {
	s.calls++
	return nil
}

// boundBefore is a volume that another claim had.
func boundBefore(volume *corev1.PersistentVolume) {
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "x", UID: "uid-x"}
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, BoundBy, "yes")
}

// B1: an informer shows that a claim is gone for which a binding was begun, and the volume waits for what another has announced on it. It is not retained
// for what a cache shows: the claim is read live first, and is there.
func TestB1NothingIsRetainedByALateCache(t *testing.T) {
	claim := KnownClaim()
	d := newTalk(t, Hooked(), DataKey, KnownVolume("a", PreBound, DeletedPolicy), claim)
	for d.starts(); !d.step.Action.Writes(); {
		require.Equal(t, DataKey, d.step.Action.Key, "%s", d.step.Action)
		d.gets(claim, nil)
	}
	d.says("B1 UpdateVolume pv/a").stored()
	for !d.step.Done {
		d.gets(nil, ErrConnection)
	}
	begun := At("200", KnownVolume("a", BoundToClaim, DeletedPolicy, VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"controller-2","token":5}`), VolumeFinalizers(reclaim.AnnouncementFinalizer)))
	d.state.Observe(begun)
	d.state.ObserveDeleted(claim)
	d.key = AKey
	for d.starts(); !d.step.Done; {
		require.Equal(t, decision.Read, d.step.Action.Kind, "%s", d.step.Action)
		if d.step.Action.Key == DataKey {
			d.gets(At("201", claim.DeepCopy()), nil)
		} else {
			d.gets(begun, nil)
		}
	}
}
