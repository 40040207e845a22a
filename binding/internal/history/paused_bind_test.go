package history

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// pausedBind is a leader that is paused while it binds the claim "data" to the volume "a". Another one binds the two meanwhile, a pod writes to the
// volume, the claim is deleted, and made again.
type pausedBind struct {
	begins string                               // whose choice the volume is
	policy corev1.PersistentVolumeReclaimPolicy // of the volume
	late   []obj.Kind                           // the caches of the first leader that show nothing of it
	again  bool                                 // the claim is made again before the second leader hears that it is gone
}

func (p pausedBind) String() string {
	return fmt.Sprintf("%s, %s, late caches of %v, made again at once: %t", p.begins, p.policy, p.late, p.again)
}

func pausedBinds() (all []pausedBind) {
	for _, begins := range []string{"a controller chooses it", "a person reserves it", "the claim names it", "both name it", "a person writes the UID"} {
		for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
			for _, late := range [][]obj.Kind{nil, {obj.KindClaim}, {obj.KindVolume}, {obj.KindClaim, obj.KindVolume}} {
				for _, again := range []bool{false, true} {
					all = append(all, pausedBind{begins, policy, late, again})
				}
			}
		}
	}
	return all
}

// B1, B2, X3: whatever the leader does when it goes on, the data goes to no other claim of that name, and is not lost but by the policy.
func TestB1ALeaderIsPausedWhileItBinds(t *testing.T) {
	plays := 0
	for i, bind := range pausedBinds() {
		if ModeOfRun() == RunShort && i%8 != 0 {
			continue
		}
		for n := 1; bind.play(t, n); n++ {
			plays++
		}
	}
	t.Logf("paused before each of %d calls", plays)
	require.Greater(t, plays, 40)
}

// play pauses the first leader before its n-th call, and reports whether it made so many.
func (p pausedBind) play(t *testing.T, n int) (paused bool) {
	server, storage := bindingtest.NewServer(), bindingtest.NewStorage()
	storage.IgnoreTokens()
	create := func(object obj.Object) obj.Object {
		stored, err := server.Create(t.Context(), object)
		require.NoError(t, err, "%s, before call %d", p, n)
		return stored
	}
	leader := func(name string) *bindingtest.Driver {
		return bindingtest.NewDriver(server, bindingtest.DriverOptions{Name: name, Hooks: storage.Hooks(Ours, "hostPath"),
			BindingOptions: decision.Options{Protection: decision.ProtectionOn}})
	}
	volume, claim := bindingtest.Volume("a", "2Gi", WithPolicy(p.policy)), bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("")))
	again := claim.DeepCopy()
	if p.begins == "the claim names it" || p.begins == "both name it" {
		claim.Spec.VolumeName = "a"
	}
	data := obj.KeyOf(claim)
	switch first := create(claim); p.begins {
	case "a person reserves it", "both name it":
		RefersTo(claim.Namespace, claim.Name, "")(volume)
	case "a person writes the UID":
		RefersTo(claim.Namespace, claim.Name, first.GetUID())(volume)
	}
	create(volume)
	storage.Add(volume)
	first, second := leader("first"), leader("second")
	made := pauseBefore(n, first.Client, func() {
		first.Hold(p.late...)
		require.NoError(t, second.Settle(t.Context()))
		require.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase, "%s, before call %d", p, n)
		require.True(t, storage.Write("a"))
		require.NoError(t, server.Delete(t.Context(), data, metav1.DeleteOptions{}))
		if !p.again {
			require.NoError(t, second.Settle(t.Context()))
		}
		for server.Claim("default", "data") != nil && p.again { // its protection goes, and nothing else is done yet
			gone := server.Claim("default", "data").DeepCopy()
			gone.Finalizers = nil
			_, err := server.UpdateClaim(t.Context(), gone)
			require.NoError(t, err)
		}
		create(again)
	})
	require.NoError(t, first.Settle(t.Context()))
	first.Release(p.late...)
	for range 4 {
		require.NoError(t, bindingtest.Settle(t.Context(), first, second))
		require.NoError(t, first.AdvanceClock(t.Context()))
		require.NoError(t, second.AdvanceClock(t.Context()))
	}
	if !*made {
		return false
	}
	require.Empty(t, storage.Problems(), "%s, before call %d", p, n)
	now, left := server.Claim("default", "data"), storage.Kept()
	require.NotNil(t, now)
	what := fmt.Sprintf("%s, before call %d", p, n)
	if p.policy == corev1.PersistentVolumeReclaimRecycle && now.Spec.VolumeName == "a" {
		require.Equal(t, bindingtest.Scrubbed, left[0].Content, what)
		return true
	}
	require.Empty(t, now.Spec.VolumeName, what)
	if len(left) > 0 { // what the policy says, or the storage is retained
		require.Equal(t, bindingtest.Written, left[0].Content, what)
		require.Equal(t, corev1.VolumeReleased, server.Volume("a").Status.Phase, what)
		require.Equal(t, corev1.PersistentVolumeReclaimRetain, server.Volume("a").Spec.PersistentVolumeReclaimPolicy, what)
	} else {
		require.Equal(t, corev1.PersistentVolumeReclaimDelete, p.policy, what)
	}
	return true
}
