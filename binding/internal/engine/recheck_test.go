package engine_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// later is what is known of an object after so many more writes.
func later[T obj.Object](t *testing.T, object T, writes uint64) T {
	t.Helper()
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	require.NoError(t, err)
	copied := object.DeepCopyObject().(T)
	copied.SetResourceVersion(strconv.FormatUint(version+writes, 10))
	return copied
}

// settledPair is a claim that is Bound, and its volume.
func settledPair(t *testing.T) *Driven {
	t.Helper()
	cluster, _ := binds()
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
	return cluster
}

func TestRecheckReadsWhatCacheAndControllerDoNotAgreeAbout(t *testing.T) {
	for known, tell := range map[string]func(*binding.Controller, obj.Object){
		"gone":               func(c *binding.Controller, object obj.Object) { c.ObserveDeleted(object) },
		"in a later version": func(c *binding.Controller, object obj.Object) { c.Observe(later(t, object, 100)) },
	} {
		for _, key := range []obj.Key{obj.VolumeKey("pv"), obj.ClaimKey("default", "data")} {
			t.Run("W7 "+key.String()+" is known "+known, func(t *testing.T) {
				cluster := settledPair(t)
				cached, err := cluster.Get(t.Context(), key)
				require.NoError(t, err)
				tell(cluster.Controller, cached)
				before := len(cluster.Calls())
				require.Equal(t, []obj.Key{key}, cluster.Controller.Recheck(cached))
				_, err = cluster.Controller.Sync(t.Context(), key)
				require.ErrorContains(t, err, "restored from a backup")
				for _, call := range cluster.CallsSince(before) {
					if call.Verb == bindingtest.VerbRecord {
						assert.Equal(t, decision.EventServerWentBack, call.Event.Reason, "W8")
						continue
					}
					assert.Equal(t, bindingtest.VerbGet, call.Verb, "nothing is decided before it is read")
					assert.Equal(t, key, call.Key)
				}
				assertAgreed(t, cluster, cached)
			})
		}
	}
}

// assertAgreed asserts that the object, as a cache has it, is the one that is known: nothing more is read or written.
func assertAgreed(t *testing.T, cluster *Driven, cached obj.Object) {
	t.Helper()
	before := len(cluster.Calls())
	for _, key := range cluster.Controller.Recheck(cached) {
		_, err := cluster.Controller.Sync(t.Context(), key)
		require.NoError(t, err)
	}
	assert.Len(t, cluster.Calls(), before, "X8")
}

func TestRecheckOfWhatIsSettledCostsNothing(t *testing.T) {
	cluster := settledPair(t)
	for _, cached := range []obj.Object{cluster.Volume("pv"), cluster.Claim("default", "data")} {
		require.Len(t, cluster.Controller.Recheck(cached), 1, "it is synced all the same")
		assertAgreed(t, cluster, cached)
	}
}

// A cache that has a later version is no proof either: it may not have listed anew since the server went back.
func TestRecheckReadsWhatIsNewInACache(t *testing.T) {
	cluster := settledPair(t)
	cached := later(t, cluster.Claim("default", "data"), 100)
	before := len(cluster.Calls())
	require.Equal(t, []obj.Key{obj.KeyOf(cached)}, cluster.Controller.Recheck(cached), "W7")
	_, err := cluster.Controller.Sync(t.Context(), obj.KeyOf(cached))
	require.NoError(t, err)
	require.Len(t, cluster.CallsSince(before), 1)
	assert.Equal(t, bindingtest.VerbGet, cluster.CallsSince(before)[0].Verb)
	assertAgreed(t, cluster, cluster.Claim("default", "data"))
}

// A volume that is reserved for a claim, whose write of it has an unknown outcome, stays so until the claim's sync has
// read it.
func TestRecheckLeavesAWriteInDoubtToItsSync(t *testing.T) {
	cluster, writes := binds()
	volume, claim := cluster.Volume("pv"), cluster.Claim("default", "data")
	cluster.Client.Use(bindingtest.LoseAnswer(1, writes[0]))
	state := engine.New(Unprotected(decision.Options{}), 10)
	state.Observe(volume)
	state.Observe(claim)
	step := state.Start(obj.KeyOf(claim))
	step = state.Proceed(obj.KeyOf(claim), Perform(cluster.Client, step.Action))
	require.True(t, step.Done)
	require.Equal(t, obj.KeyOf(claim), state.InDoubt(obj.VolumeKey("pv")), "B6")
	t.Run("B6", func(t *testing.T) {
		state.ObserveDeleted(volume)
		state.Recheck(volume)
		assert.Equal(t, obj.KeyOf(claim), state.InDoubt(obj.VolumeKey("pv")))
	})
}

// Nobody reads classes and pods live: what a cache still has of one at a resync is there.
func TestRecheckBelievesACacheOfClassesAndPods(t *testing.T) {
	late := bindingtest.Class("late", func(class *storagev1.StorageClass) {
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		class.VolumeBindingMode = &mode
	})
	waits := bindingtest.Claim("default", "waits", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &late.Name })
	for known, tell := range map[string]func(*binding.Controller, obj.Object){
		"gone": func(c *binding.Controller, object obj.Object) { c.ObserveDeleted(object) },
		"in a later version": func(c *binding.Controller, object obj.Object) {
			changed := later(t, object, 100)
			if pod, ok := changed.(*corev1.Pod); ok {
				pod.Spec.Volumes = nil
			}
			if class, ok := changed.(*storagev1.StorageClass); ok {
				class.VolumeBindingMode = nil
			}
			c.Observe(changed)
		},
	} {
		t.Run("W7 "+known, func(t *testing.T) {
			cluster := NewDriven(late, waits, bindingtest.Pod("default", "web", "", "waits"))
			require.NoError(t, cluster.Settle(t.Context()))
			for _, key := range []obj.Key{{Kind: obj.KindClass, Name: "late"}, bindingtest.PodKey("default", "web")} {
				cached, err := cluster.Get(t.Context(), key)
				require.NoError(t, err)
				tell(cluster.Controller, cached)
				assert.Contains(t, cluster.Controller.Recheck(cached), obj.KeyOf(waits), "%s is there: W4, W5", key)
				assert.Empty(t, cluster.Controller.Recheck(cached), "%s is known now", key)
			}
		})
	}
}

func TestW7WhatIsKnownAndInNoCacheIsRead(t *testing.T) {
	for _, key := range []obj.Key{obj.VolumeKey("pv"), obj.ClaimKey("default", "data")} {
		t.Run(key.String(), func(t *testing.T) {
			cluster := settledPair(t)
			cached := func(object obj.Object) bool { return object.GetName() != key.Name }
			for range 2 {
				before := len(cluster.Calls())
				require.Equal(t, []obj.Key{key}, cluster.Controller.RecheckKnown(cached))
				_, err := cluster.Controller.Sync(t.Context(), key)
				require.NoError(t, err)
				calls := cluster.CallsSince(before)
				require.Len(t, calls, 1, "it is there: nothing is written")
				assert.Equal(t, bindingtest.VerbGet, calls[0].Verb)
				assert.Equal(t, key, calls[0].Key)
			}
			assert.Empty(t, cluster.Controller.RecheckKnown(func(obj.Object) bool { return true }))
		})
	}
}

// Nobody reads them live: what no cache has of one at a resync is gone, and what depends on it is synced.
func TestW7AClassAPodOrAnAttachmentThatNoCacheHasIsForgotten(t *testing.T) {
	claim, volume := obj.ClaimKey("default", "data"), obj.VolumeKey("pv")
	for key, woken := range map[obj.Key]obj.Key{
		{Kind: obj.KindClass, Name: "late"}:    claim,
		bindingtest.PodKey("default", "web"):   claim,
		bindingtest.PodKey("default", "other"): claim,
		bindingtest.AttachmentKey("pv-node"):   volume,
	} {
		t.Run(key.String(), func(t *testing.T) {
			c := &binding.Controller{Options: Unprotected(decision.Options{})}
			shown := objectsOfAllKinds()
			for _, object := range shown {
				c.Observe(object)
			}
			all := func(obj.Object) bool { return true }
			others := func(object obj.Object) bool { return object != shown[key] }
			require.Empty(t, c.RecheckKnown(all), "caches have all of it")
			require.Equal(t, []obj.Key{woken}, c.RecheckKnown(others))
			assert.Empty(t, c.RecheckKnown(others), "it is not known any more")
			assert.Empty(t, c.Observe(shown[key]), "X3 nor does an old event bring it back")
			assert.Equal(t, []obj.Key{woken}, c.Recheck(shown[key]), "a cache has it again")
			assert.Equal(t, []obj.Key{woken}, c.RecheckKnown(others), "so that it is known")
		})
	}
}

func TestW7OfPodsThatNoCacheHasAClaimIsSyncedOnce(t *testing.T) {
	c := &binding.Controller{Options: Unprotected(decision.Options{})}
	for _, object := range objectsOfAllKinds() {
		c.Observe(object)
	}
	keys := c.RecheckKnown(func(obj.Object) bool { return false })
	assert.ElementsMatch(t, []obj.Key{obj.ClaimKey("default", "data"), obj.VolumeKey("pv")}, keys)
}

// objectsOfAllKinds has a claim that two pods use, its class, and a volume that is to be reclaimed and is attached.
func objectsOfAllKinds() map[obj.Key]obj.Object {
	late := bindingtest.Class("late")
	claim := bindingtest.Claim("default", "data", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &late.Name })
	objects := map[obj.Key]obj.Object{}
	for i, object := range []obj.Object{
		late, claim, bindingtest.Volume("pv", "1Gi", func(volume *corev1.PersistentVolume) { volume.Status.Phase = corev1.VolumeReleased }),
		bindingtest.Pod("default", "web", "node", "data"), bindingtest.Pod("default", "other", "node", "data"), bindingtest.Attachment("pv", "node"),
	} {
		object.SetUID(types.UID(strconv.Itoa(i)))
		object.SetResourceVersion(strconv.Itoa(i + 1))
		key, _ := bindingtest.KeyOf(object)
		objects[key] = object
	}
	return objects
}

func TestW7WhatIsKnownAsACacheHasIt(t *testing.T) {
	state := engine.New(Unprotected(decision.Options{}), 1)
	assert.False(t, state.Knows(KnownVolume("a")), "it is new")
	state.Observe(KnownVolume("a"))
	assert.True(t, state.Knows(KnownVolume("a")))
	assert.False(t, state.Knows(At("99", KnownVolume("a"))), "in another version")
	assert.False(t, state.Knows(KnownVolume("a", func(v *corev1.PersistentVolume) { v.UID = "uid-9" })), "another one of its name")
	state.ObserveDeleted(KnownVolume("a"))
	state.Observe(KnownVolume("a"))
	assert.False(t, state.Knows(KnownVolume("a")), "it was gone, and is back")
}
