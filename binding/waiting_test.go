package binding_test

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
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// crowd is the claims that wait, and beside it the claims that were put in.
type crowd struct {
	indexed
	class  *storagev1.StorageClass // of all that name one
	list   index.Waiting
	claims map[obj.Key]*corev1.PersistentVolumeClaim
}

func newCrowd(seed, n uint64) *crowd {
	c := &crowd{claims: map[obj.Key]*corev1.PersistentVolumeClaim{}}
	c.world = world{rand.New(rand.NewPCG(seed, n))}
	c.class = classWith(new(pick(c.world, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)))
	return c
}

func (c *crowd) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == c.class.Name {
		return c.class
	}
	return nil
}

func (c *crowd) change() {
	claim := c.newClaim()
	if c.rarely(4) {
		c.list.Delete(obj.KeyOf(claim))
		delete(c.claims, obj.KeyOf(claim))
		return
	}
	c.list.Set(claim, c.classOf(claim))
	c.claims[obj.KeyOf(claim)] = claim
}

func (c *crowd) newClaim() *corev1.PersistentVolumeClaim {
	claim := c.claim()
	claim.Namespace, claim.Name = pick(c.world, "a", "b"), fmt.Sprintf("data-%d", c.IntN(12))
	claim.Spec.Resources.Requests = pick(c.world, nil, storage("1"), storage("500m"), storage("1Gi"), storage("2Gi"), storage("2048Mi"), storage("2G"), storage("9E"), storage("10E"))
	if c.rarely(4) {
		claim.Spec.Selector = c.selectorOfSome()
	}
	if c.rarely(20) {
		pick(c.world, func() { claim.Spec.VolumeName = "pv-1" },
			func() { claim.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0)) },
			func() { claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"} },
			func() { claim.Spec.AccessModes = append(claim.Spec.AccessModes, "ReadNever") },
			func() { claim.Spec.Resources.Requests = storage("-1") })()
	}
	return claim
}

// W1: the list finds the claim that a look at every claim finds, whoever has had its turn or is taken.
func TestWaitingAgreesWithAScan(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	found := 0
	for n := range worlds(6_000) {
		c := newCrowd(seed, uint64(n))
		for range c.IntN(30) {
			c.change()
		}
		volume := c.newVolume("pv-1")
		volume.Spec.ClaimRef = nil
		volume.Spec.Capacity = pick(c.world, storage("0"), storage("700m"), storage("1Gi"), storage("2G"), storage("3Gi"), storage("10E"), storage("-1"), nil)
		tried := obj.ClaimKey("a", fmt.Sprintf("data-%d", c.IntN(12)))
		takes := func(claim *corev1.PersistentVolumeClaim) bool {
			return obj.KeyOf(claim) != tried && index.WaitsFor(claim, volume, func(*corev1.PersistentVolumeClaim) match.Terms { return match.Terms{Class: c.classOf(claim)} })
		}
		var want *corev1.PersistentVolumeClaim
		for _, claim := range c.claims {
			if claim.Spec.VolumeName == "" && takes(claim) {
				want = index.Needier(want, claim, volume)
			}
		}
		list := &c.list
		if c.rarely(10) {
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

// Claims that the volume cannot serve by class, modes, size or label are not even asked about.
func TestWaitingAsksFew(t *testing.T) {
	var list index.Waiting
	for i := range 100 {
		name := func(c *corev1.PersistentVolumeClaim) { c.Name = fmt.Sprintf("data-%d", i) }
		list.Set(fitClaim(name, asking(fmt.Sprintf("%dGi", i+1))), nil)
		list.Set(fitClaim(name, asking("1Gi"), askingLabel("disk", fmt.Sprint(i)), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "labelled" }), nil)
	}
	var asked []string
	list.First(fitVolume("pv", sized("3Gi"), labelled("disk", "7")), func(claim *corev1.PersistentVolumeClaim) bool {
		asked = append(asked, obj.KeyOf(claim).String())
		return false
	})
	assert.Equal(t, []string{"pvc/default/data-2", "pvc/default/data-1", "pvc/default/data-0", "pvc/labelled/data-7"}, asked)
}

// A volume that no claim can have, for what it is itself, is shown to none.
func TestWaitingShowsNobodyWhatNobodyCanHave(t *testing.T) {
	var list index.Waiting
	list.Set(fitClaim(), nil)
	for name, edit := range map[string]func(*corev1.PersistentVolume){
		"M9 Released":  func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased },
		"M9 Failed":    func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed },
		"M1 deleting":  func(v *corev1.PersistentVolume) { v.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0)) },
		"M3 malformed": func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil },
	} {
		list.First(fitVolume("pv", edit), func(*corev1.PersistentVolumeClaim) bool {
			t.Errorf("%s: a claim is asked", name)
			return false
		})
	}
}
