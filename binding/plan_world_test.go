package binding_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

// planWorld makes random small clusters with one pod, in which claims compete for few volumes.
type planWorld struct {
	world
	pod     *corev1.Pod
	view    binding.PodSnapshot
	nodes   []*corev1.Node
	assumed *binding.Assumptions
}

func newPlanWorld(source rand.Source) *planWorld {
	w := &planWorld{world: world{rand.New(source)}}
	w.view.Classes = w.classes()
	names := []string{"c-0", "c-1", "c-2", "c-3"}[:1+pick(w.world, 0, 1, 1, 2, 2, 3)]
	w.pod = bindingtest.Pod("default", "web", "", names...)
	for _, name := range names {
		w.view.Claims = append(w.view.Claims, w.planClaim(name))
	}
	for i := range pick(w.world, 0, 2, 3, 4, 5, 6, 7) {
		w.view.Volumes = append(w.view.Volumes, w.planVolume(fmt.Sprintf("pv-%d", i)))
	}
	w.shuffle(w.view.Volumes)
	for _, zone := range []string{"a", "b", "c"} {
		node := nodeIn(zone)
		node.Labels["rank"] = "7"
		w.nodes = append(w.nodes, node)
	}
	return w
}

// classes are fast, which mostly provisions nothing, and slow, which mostly does.
func (w *planWorld) classes() []*storagev1.StorageClass {
	const none, csi = "kubernetes.io/no-provisioner", "csi.example.com"
	fast := classOf("fast", pick(w.world, none, none, csi), delayedClass)
	slow := classOf("slow", pick(w.world, none, csi, csi, ""), delayedClass)
	if w.rarely(3) {
		slow.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: "zone", Values: []string{"a"}}}}}
	}
	if w.rarely(3) {
		w.view.CSIDrivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: csi}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
		for i := range w.IntN(4) {
			w.view.Capacities = append(w.view.Capacities, w.planCapacity(fmt.Sprintf("cap-%d", i)))
		}
	}
	return []*storagev1.StorageClass{fast, slow}
}

func (w *planWorld) planCapacity(name string) *storagev1.CSIStorageCapacity {
	capacity := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: name}, StorageClassName: pick(w.world, "fast", "slow")}
	capacity.NodeTopology = pick(w.world, nil, &metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"zone": pick(w.world, "a", "b")}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a", "rank": "7"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "c", "a"}}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}})
	size := storage(pick(w.world, "1Gi", "2Gi", "100Gi"))[corev1.ResourceStorage]
	capacity.Capacity = pick(w.world, nil, &size, &size)
	if limit := storage(pick(w.world, "1Gi", "3Gi"))[corev1.ResourceStorage]; w.rarely(3) {
		capacity.MaximumVolumeSize = &limit
	}
	return capacity
}

func (w *planWorld) planClaim(name string) *corev1.PersistentVolumeClaim {
	claim := fitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = name, types.UID("uid-"+name) })
	claim.Spec.Resources.Requests = storage(pick(w.world, "0", "1Gi", "1Gi", "1Gi", "2Gi", "2Gi", "3Gi", "1500m"))
	if w.rarely(8) {
		claim.Spec.Resources.Requests = nil
	}
	claim.Spec.AccessModes = modes(pick(w.world, "O", "O", "O", "O", "O", "O", "O", "M", "M", "OM", "R"))
	claim.Spec.StorageClassName = pick(w.world, new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("slow"))
	if w.rarely(8) {
		noSilver := []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"silver"}}}
		claim.Spec.Selector = pick(w.world, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, &metav1.LabelSelector{MatchExpressions: noSilver},
			&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: noSilver})
	}
	if w.rarely(20) {
		claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	return claim
}

func (w *planWorld) planVolume(name string) *corev1.PersistentVolume {
	volume := fitVolume(name, sized(pick(w.world, "1Gi", "1Gi", "2Gi", "2Gi", "3Gi", "3Gi", "1500m", "1501m", "2")))
	volume.ResourceVersion = "1"
	volume.Spec.AccessModes = modes(pick(w.world, "O", "O", "OM", "OM", "M", "ORM"))
	volume.Spec.StorageClassName = pick(w.world, "fast", "fast", "fast", "fast", "fast", "fast", "slow")
	volume.Labels = pick(w.world, nil, map[string]string{"tier": "gold"}, map[string]string{"tier": "gold"}, map[string]string{"tier": "silver"})
	volume.Status.Phase = pick(w.world, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable,
		corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumePending, corev1.VolumeReleased)
	if w.rarely(20) {
		volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	if !w.rarely(2) {
		affine(term(pick(w.world, require1("zone", corev1.NodeSelectorOpIn, "a"), require1("zone", corev1.NodeSelectorOpIn, "a"),
			require1("zone", corev1.NodeSelectorOpIn, "a", "b"), require1("zone", corev1.NodeSelectorOpNotIn, "b"),
			require1("rank", corev1.NodeSelectorOpGt, "5"))))(volume)
	}
	if w.rarely(8) {
		zone := require1("zone", corev1.NodeSelectorOpIn, pick(w.world, "a", "b"))
		rank := require1("rank", corev1.NodeSelectorOpIn, pick(w.world, "7", "8"), "9")
		affine(pick(w.world, []corev1.NodeSelectorTerm{term(rank, zone)}, []corev1.NodeSelectorTerm{term(zone), term(rank)}, []corev1.NodeSelectorTerm{term(zone), term(zone, rank)})...)(volume)
	}
	w.relate(volume)
	return volume
}

// relate sets some volumes aside, and takes some away.
func (w *planWorld) relate(volume *corev1.PersistentVolume) {
	if !w.rarely(5) {
		return
	}
	name := pick(w.world, "c-0", "c-1", "c-2", "stranger")
	refersTo("default", name, pick(w.world, types.UID(""), types.UID("uid-"+name), "uid-of-earlier"))(volume)
}

func (w *planWorld) request() binding.PodRequest {
	return binding.PodRequest{Pod: w.pod, View: w.view, Index: w.view.Index(), Assumed: w.assumed}
}
