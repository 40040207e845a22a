package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// M2: a watch that begins anew, or a live read, shows a volume in place of the former one of its name, whose end nobody has seen. What is known of that one, and
// so what is done, is the same as where its end was seen first. Random lives of a volume and its claims are shown in both ways.
func TestM2AVolumeIsSeenInPlaceOfTheFormerOne(t *testing.T) {
	for seed := range Seeds(t, Counts{Short: 300, Usual: 3000, Full: 30_000, Long: 300_000}) {
		seen, replaced := [2][]string{}, 0
		for way := range seen {
			seen[way], replaced = livesOf(t, rand.New(rand.NewPCG(seed, 21)), way == 0)
		}
		require.Equal(t, seen[0], seen[1], "seed %d, replaced %d times", seed, replaced)
	}
}

// livesOf has a State see a random life, with the end of each volume or without, and returns what is shown and done.
func livesOf(t *testing.T, random *rand.Rand, ends bool) (log []string, replaced int) {
	state := engine.New(Unprotected(Hooked()), 10)
	seeks := KnownClaim(Named("seeks"), OfUID("uid-9"))
	state.Observe(seeks)
	for i := range 12 {
		object, key := nextOfLife(random, fmt.Sprint(100+10*i))
		known := state.Known(key)
		switch {
		case known != nil && random.IntN(3) > 0:
			object.SetUID(known.GetUID())
		case known != nil:
			if replaced++; ends {
				state.ObserveDeleted(known)
			}
		}
		state.Observe(object)
		log = append(log, shows(object))
	}
	var there []obj.Object
	keys := []obj.Key{obj.VolumeKey("a"), DataKey, obj.ClaimKey("default", "other"), obj.KeyOf(seeks)}
	for _, key := range keys {
		if known := state.Known(key); known != nil {
			there = append(there, known)
		}
	}
	for _, key := range keys {
		clone := state.Clone()
		step := reads(t, clone, clone.Start(key), key, there...)
		log = append(log, fmt.Sprintf("%s: %s", key, step.Action))
		for _, writes := range []obj.Object{step.Action.Volume, step.Action.Claim} {
			log = append(log, shows(writes))
		}
	}
	return log, replaced
}

// nextOfLife returns a version of the volume or of a claim, as one that was made with it.
func nextOfLife(random *rand.Rand, version string) (object obj.Object, key obj.Key) {
	status := ClaimPhase(anyOf(random, corev1.ClaimBound, corev1.ClaimLost, corev1.ClaimPending))
	again := OfUID(types.UID("uid-of-" + version))
	switch random.IntN(4) {
	case 0:
		return At(version, KnownClaim(again, anyOf(random, BoundTo("a"), BoundTo("b"), Naming("a"), func(*corev1.PersistentVolumeClaim) {}), status)), DataKey
	case 1:
		return At(version, KnownClaim(Named("other"), again, anyOf(random, BoundTo("a"), BoundTo("b"), func(*corev1.PersistentVolumeClaim) {}), status)), obj.ClaimKey("default", "other")
	}
	uid := anyOf(random, "uid-1", "uid-2", "uid-gone", "", "uid-of-100", "uid-of-110", "uid-of-120", "uid-of-130", "uid-of-140")
	volume := At(version, KnownVolume("a", InPhase(anyOf(random, corev1.VolumePending, corev1.VolumeAvailable, corev1.VolumeBound)),
		anyOf(random, RefersTo("default", "data", types.UID(uid)), RefersTo("default", "other", types.UID(uid)), RefersTo("shop", "gone", types.UID(uid)), func(*corev1.PersistentVolume) {}),
		WithPolicy(anyOf(random, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain))))
	volume.UID = types.UID("uid-of-" + version)
	return volume, obj.VolumeKey("a")
}

func anyOf[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// shows returns what matters of an object.
func shows(object obj.Object) string {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if object != nil {
			return fmt.Sprintf("volume %s %s %s %+v", object.UID, object.Status.Phase, object.Spec.PersistentVolumeReclaimPolicy, object.Spec.ClaimRef)
		}
	case *corev1.PersistentVolumeClaim:
		if object != nil {
			return fmt.Sprintf("claim %s %s %q", object.Name, object.Status.Phase, object.Spec.VolumeName)
		}
	}
	return ""
}
