package e2e

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
)

// plan is a random world, which can be built many times: what is there, and the pods that come one after the other.
type plan struct {
	nodes      int
	zones      []int // of nodes
	volumes    []plannedVolume
	capacities []int // of nodes, in Gi; nil: not published
	onlyZone   int   // of class made; -1: all
	pods       []plannedPod
	late       []plannedVolume // come with the last pod, while nobody binds; nil: it comes as the others do
}

// Sizes are in quarters of a Gi, all different, so that no choice is left to a tie.
type plannedVolume struct {
	size     int
	node     int // -1: a whole zone
	zone     int
	many     bool // it allows ReadWriteMany too
	block    bool
	holder   string // the claim that it is pre-bound for
	lateness        // of one that comes late
}

type plannedClaim struct {
	size  int
	made  bool // of class made
	many  bool
	block bool
	held  bool // by a volume that is pre-bound for it: it is Bound before its pod comes
}

func (c plannedClaim) class() string {
	if c.made {
		return "made"
	}
	return "local"
}

type plannedPod struct {
	claims []plannedClaim
	prefer []int // nodes, from the one with the largest weight on
	only   int   // the node that it may run on; -1: all
}

func planWorld(random *rand.Rand) plan {
	p := plan{nodes: 2 + random.IntN(4), onlyZone: -1}
	chance := func(percent int) bool { return random.IntN(100) < percent }
	sizes := random.Perm(160)
	size := func() int {
		next := sizes[0]
		sizes = sizes[1:]
		return 4 + next
	}
	for range p.nodes {
		p.zones = append(p.zones, random.IntN(2))
	}
	if chance(60) {
		for range p.nodes {
			p.capacities = append(p.capacities, size()/4)
		}
	}
	if chance(20) {
		p.onlyZone = random.IntN(2)
	}
	for n := range p.nodes {
		for range random.IntN(4) {
			p.volumes = append(p.volumes, plannedVolume{size: size(), node: n, many: chance(40), block: chance(10)})
		}
	}
	if chance(40) {
		p.volumes = append(p.volumes, plannedVolume{size: size(), node: -1, zone: random.IntN(2), many: chance(40)})
	}
	for number := range 2 + random.IntN(4) {
		pod := plannedPod{prefer: random.Perm(p.nodes), only: -1}
		if chance(15) {
			pod.only = random.IntN(p.nodes)
		}
		for range []int{0, 1, 1, 1, 2, 2, 2, 3, 3, 4}[random.IntN(10)] {
			claim := plannedClaim{size: size(), made: chance(25), many: chance(20), block: chance(8)}
			if !claim.made && chance(70) {
				claim.size = 2 + claim.size/5
			}
			if v := random.IntN(1 + len(p.volumes)); v < len(p.volumes) && chance(15) && p.volumes[v].holder == "" {
				p.volumes[v].holder = claimName(number, len(pod.claims))
				claim = plannedClaim{size: p.volumes[v].size - 1, many: p.volumes[v].many, block: p.volumes[v].block, held: true}
			}
			pod.claims = append(pod.claims, claim)
		}
		p.pods = append(p.pods, pod)
	}
	if chance(50) {
		p.planLate(random, size)
	}
	return p
}

func quarters(n int) string { return resource.NewQuantity(int64(n)<<28, resource.BinarySI).String() }

func claimName(pod, claim int) string { return fmt.Sprintf("claim-%d-%d", pod, claim) }

// furnish creates what is there before the pods.
func (p plan) furnish(w *world) {
	made := func(class *storagev1.StorageClass) {
		if p.onlyZone >= 0 {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{fmt.Sprintf("zone-%d", p.onlyZone)}}}}}
		}
	}
	objects := []obj.Object{w.Class("local"), w.Class("made", w.Provisioned, made)}
	if p.capacities != nil {
		objects = append(objects, w.Driver())
	}
	for n := range p.nodes {
		node := w.Node(fmt.Sprintf("n%d", n))
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d", p.zones[n])
		objects = append(objects, node)
		if p.capacities != nil {
			objects = append(objects, w.Capacity(fmt.Sprintf("n%d", n), fmt.Sprintf("%dGi", p.capacities[n])))
		}
	}
	for v, volume := range p.volumes {
		objects = append(objects, volume.of(w, fmt.Sprintf("v%d", v), "local"))
	}
	w.Create(objects...)
	for v, volume := range p.volumes {
		if volume.holder == "" {
			w.Available(fmt.Sprintf("v%d", v))
		}
	}
}

func (v plannedVolume) of(w *world, name, class string) *corev1.PersistentVolume {
	return w.Disk(name, quarters(v.size), fmt.Sprintf("n%d", v.node), func(volume *corev1.PersistentVolume) {
		volume.Spec.StorageClassName = w.Of(class)
		if v.node < 0 {
			only := &volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
			only.Key, only.Values[0] = corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", v.zone)
		}
		if v.many {
			volume.Spec.AccessModes = append(volume.Spec.AccessModes, corev1.ReadWriteMany)
		}
		if v.block {
			volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		}
		if v.holder != "" {
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: w.Namespace, Name: v.holder}
		}
	})
}

// claimsOf creates the claims of a pod, and waits for those that have a volume without it.
func (p plan) claimsOf(w *world, number int) {
	var objects []obj.Object
	for c, claim := range p.pods[number].claims {
		objects = append(objects, w.Claim(claimName(number, c), quarters(claim.size), claim.class(), func(object *corev1.PersistentVolumeClaim) {
			if claim.many {
				object.Spec.AccessModes[0] = corev1.ReadWriteMany
			}
			if claim.block {
				object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			}
		}))
	}
	w.Create(objects...)
	for c, claim := range p.pods[number].claims {
		if claim.held {
			clustertest.Eventually(w, func() bool { return w.StoredClaim(claimName(number, c)).Status.Phase == corev1.ClaimBound }, "%s is Bound", claimName(number, c))
		}
	}
}

// podOf returns a pod. It prefers some node to any other, so that no tie of scores is left.
func (p plan) podOf(w *world, number int) *corev1.Pod {
	planned := p.pods[number]
	claims := make([]string, len(planned.claims))
	for c := range claims {
		claims[c] = claimName(number, c)
	}
	pod := w.Pod(fmt.Sprintf("pod-%d", number), claims...)
	if planned.only >= 0 {
		pod.Spec.NodeSelector[corev1.LabelHostname] = w.Of(fmt.Sprintf("n%d", planned.only))
	}
	affinity := &corev1.NodeAffinity{}
	for i, n := range planned.prefer {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: int32(100 - 20*i),
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{w.Of(fmt.Sprintf("n%d", n))}}}},
		})
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	return pod
}
