package testkit

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Variant is a kind of cluster, and what its claims request.
type Variant struct {
	Name   string
	volume func(r *rand.Rand, v *corev1.PersistentVolume)
	Claim  func(r *rand.Rand, c *corev1.PersistentVolumeClaim)
	Node   func(r *rand.Rand) *corev1.Node
}

// Volumes returns so many random volumes of the variant. The same count gives the same volumes.
func (v Variant) Volumes(count int) []*corev1.PersistentVolume {
	r := rand.New(rand.NewPCG(1, uint64(count)))
	volumes := make([]*corev1.PersistentVolume, count)
	for i := range volumes {
		volumes[i] = FitVolume(fmt.Sprintf("pvc-%08d", i))
		volumes[i].Spec.Capacity[corev1.ResourceStorage] = SizeMix(r)
		if v.volume != nil {
			v.volume(r, volumes[i])
		}
	}
	r.Shuffle(count, func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
	return volumes
}

// Variants are the kinds of cluster that benchmarks measure.
var Variants = []Variant{
	{Name: "plain"},
	{
		Name:   "selector",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) { v.Labels = labelsOf("tier", r.IntN(tiers)) },
		Claim: func(r *rand.Rand, c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf("tier", r.IntN(tiers))}
		},
	},
	{
		Name: "affinity",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			Affine(Term(Require1("zone", corev1.NodeSelectorOpIn, fmt.Sprint(r.IntN(zones)))))(v)
		},
		Node: func(r *rand.Rand) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf("zone", r.IntN(zones))}}
		},
	},
	{
		Name: "modes",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			v.Spec.AccessModes = Modes(someModes[r.IntN(len(someModes))])
		},
		Claim: func(r *rand.Rand, c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = Modes([]string{"O", "O", "R", "M", "OM"}[r.IntN(5)])
		},
	},
	{
		Name: "bound90",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			if r.IntN(10) > 0 {
				RefersTo("other", "claim-of-"+v.Name, types.UID("uid-of-"+v.Name))(v)
				v.Status.Phase = corev1.VolumeBound
			}
		},
	},
}

const zones, tiers = 10, 10

var someModes = [...]string{"O", "O", "OR", "OM", "ORM", "RM", "M"}

func labelsOf(key string, value int) map[string]string {
	return map[string]string{key: fmt.Sprint(value)}
}

var usualGibibytes = [...]int64{1, 5, 8, 10, 20, 50, 100, 200, 500, 1000}

// SizeMix returns a random size: half of them a usual one, half of them any number of MiB up to 10 TiB.
func SizeMix(r *rand.Rand) resource.Quantity {
	mebibytes := 1 + r.Int64N(10<<20)
	if r.IntN(2) == 0 {
		mebibytes = usualGibibytes[r.IntN(len(usualGibibytes))] << 10
	}
	return *resource.NewQuantity(mebibytes<<20, resource.BinarySI)
}
