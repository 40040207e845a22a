package index_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// waitingWorld is the claims that wait, and beside it the claims that were set.
type waitingWorld struct {
	indexed
	class  *storagev1.StorageClass // of all that name one
	list   index.WaitingClaims
	claims map[obj.Key]*corev1.PersistentVolumeClaim
}

func newWaitingWorld(seed, n uint64) *waitingWorld {
	c := &waitingWorld{claims: map[obj.Key]*corev1.PersistentVolumeClaim{}}
	c.World = NewWorld(rand.NewPCG(seed, n))
	c.class = ClassWith(new(Pick(c.World, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)))
	return c
}

func (c *waitingWorld) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == c.class.Name {
		return c.class
	}
	return nil
}

func (c *waitingWorld) change() {
	claim := c.newClaim()
	if c.Rarely(4) {
		c.list.Delete(obj.KeyOf(claim))
		delete(c.claims, obj.KeyOf(claim))
		return
	}
	c.list.Set(claim, match.Terms{Class: c.classOf(claim)})
	c.claims[obj.KeyOf(claim)] = claim
}

func (c *waitingWorld) newClaim() *corev1.PersistentVolumeClaim {
	claim := c.Claim()
	claim.Namespace, claim.Name = Pick(c.World, "a", "b"), fmt.Sprintf("data-%d", c.IntN(12))
	claim.Spec.Resources.Requests = Pick(c.World, nil, Storage("1"), Storage("500m"), Storage("1Gi"), Storage("2Gi"), Storage("2048Mi"), Storage("2G"), Storage("9E"), Storage("10E"))
	if c.Rarely(4) {
		claim.Spec.Selector = c.selectorOfSome()
	}
	if c.Rarely(20) {
		Pick(c.World, func() { claim.Spec.VolumeName = "pv-1" },
			func() { claim.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0)) },
			func() { claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"} },
			func() { claim.Spec.AccessModes = append(claim.Spec.AccessModes, "ReadNever") },
			func() { claim.Spec.Resources.Requests = Storage("-1") })()
	}
	return claim
}

// W1: First finds the claim that a look at every claim finds, whichever does not take the volume.
func TestWaitingAgreesWithAScan(t *testing.T) {
	t.Parallel()
	seed := SeedOf(t)
	found := 0
	for n := range Worlds(6_000) {
		c := newWaitingWorld(seed, uint64(n))
		for range c.IntN(30) {
			c.change()
		}
		volume := c.newVolume("pv-1")
		volume.Spec.ClaimRef = nil
		volume.Spec.Capacity = Pick(c.World, Storage("0"), Storage("700m"), Storage("1Gi"), Storage("2G"), Storage("3Gi"), Storage("10E"), Storage("-1"), nil)
		tried := obj.ClaimKey("a", fmt.Sprintf("data-%d", c.IntN(12)))
		takes := func(claim *corev1.PersistentVolumeClaim) bool {
			return obj.KeyOf(claim) != tried && index.CanBind(claim, volume, func(*corev1.PersistentVolumeClaim) match.Terms { return match.Terms{Class: c.classOf(claim)} })
		}
		var want *corev1.PersistentVolumeClaim
		for _, claim := range c.claims {
			if claim.Spec.VolumeName == "" && takes(claim) {
				want = index.PreferredClaim(want, claim)
			}
		}
		list := &c.list
		if c.Rarely(10) {
			list = new(c.list.Clone())
		}
		require.Same(t, want, list.First(volume, takes), "world %d", n)
		if want != nil {
			found++
		}
	}
	assert.Positive(t, found)
	t.Logf("%d volumes found a claim", found)
}

// First calls takes only with claims that the volume fits by class, modes, size and label.
func TestWaitingComparesFew(t *testing.T) {
	var list index.WaitingClaims
	for i := range 100 {
		name := func(c *corev1.PersistentVolumeClaim) { c.Name = fmt.Sprintf("data-%d", i) }
		list.Set(FitClaim(name, Requesting(fmt.Sprintf("%dGi", i+1))), match.Terms{})
		list.Set(FitClaim(name, Requesting("1Gi"), RequestingLabel("disk", fmt.Sprint(i)), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "labelled" }), match.Terms{})
	}
	var offered []string
	list.First(FitVolume("pv", Sized("3Gi"), Labelled("disk", "7")), func(claim *corev1.PersistentVolumeClaim) bool {
		offered = append(offered, obj.KeyOf(claim).String())
		return false
	})
	assert.Equal(t, []string{"pvc/default/data-2", "pvc/default/data-1", "pvc/default/data-0", "pvc/labelled/data-7"}, offered)
}

// A volume that no claim can have, for what it is itself, is offered to none.
func TestWaitingOffersOnlyAvailableVolumes(t *testing.T) {
	var list index.WaitingClaims
	list.Set(FitClaim(), match.Terms{})
	for name, edit := range map[string]func(*corev1.PersistentVolume){
		"M9 Released":  func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased },
		"M9 Failed":    func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed },
		"M9 announced": VolumeNote(phase.AnnouncementAnnotation, "{}"),
		"M1 deleting":  func(v *corev1.PersistentVolume) { v.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0)) },
		"M3 malformed": func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil },
	} {
		list.First(FitVolume("pv", edit), func(*corev1.PersistentVolumeClaim) bool {
			t.Errorf("%s: it is offered to a claim", name)
			return false
		})
	}
}
