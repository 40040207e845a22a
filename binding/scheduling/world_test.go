package scheduling_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// planWorld makes random small clusters with one pod, in which claims compete for few volumes.
type planWorld struct {
	World
	pod     *corev1.Pod
	view    scheduling.Snapshot
	nodes   []*corev1.Node
	assumed *scheduling.Assumptions
}

func newPlanWorld(source rand.Source) *planWorld {
	w := &planWorld{World: NewWorld(source)}
	w.view.Classes = w.classes()
	names := []string{"c-0", "c-1", "c-2", "c-3"}[:1+Pick(w.World, 0, 1, 1, 2, 2, 3)]
	w.pod = bindingtest.Pod("default", "web", "", names...)
	for _, name := range names {
		w.view.Claims = append(w.view.Claims, w.planClaim(name))
	}
	for i := range Pick(w.World, 0, 2, 3, 4, 5, 6, 7) {
		w.view.Volumes = append(w.view.Volumes, w.planVolume(fmt.Sprintf("pv-%d", i)))
	}
	w.ShuffleVolumes(w.view.Volumes)
	for _, zone := range []string{"a", "b", "c"} {
		node := NodeIn(zone)
		node.Labels["rank"] = "7"
		w.nodes = append(w.nodes, node)
	}
	return w
}

// classes are fast, which mostly provisions nothing, and slow, which mostly does.
func (w *planWorld) classes() []*storagev1.StorageClass {
	const none, csi = "kubernetes.io/no-provisioner", "csi.example.com"
	fast := ClassOf("fast", Pick(w.World, none, none, csi), WaitsForFirstConsumer)
	slow := ClassOf("slow", Pick(w.World, none, csi, csi, ""), WaitsForFirstConsumer)
	if w.Rarely(3) {
		slow.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: "zone", Values: []string{"a"}}}}}
	}
	if w.Rarely(3) {
		w.view.CSIDrivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: csi}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
		for i := range w.IntN(4) {
			w.view.Capacities = append(w.view.Capacities, w.planCapacity(fmt.Sprintf("cap-%d", i)))
		}
	}
	return []*storagev1.StorageClass{fast, slow}
}

func (w *planWorld) planCapacity(name string) *storagev1.CSIStorageCapacity {
	capacity := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: name}, StorageClassName: Pick(w.World, "fast", "slow")}
	capacity.NodeTopology = Pick(w.World, nil, &metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"zone": Pick(w.World, "a", "b")}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a", "rank": "7"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "c", "a"}}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}})
	size := Storage(Pick(w.World, "1Gi", "2Gi", "100Gi"))[corev1.ResourceStorage]
	capacity.Capacity = Pick(w.World, nil, &size, &size)
	if limit := Storage(Pick(w.World, "1Gi", "3Gi"))[corev1.ResourceStorage]; w.Rarely(3) {
		capacity.MaximumVolumeSize = &limit
	}
	return capacity
}

func (w *planWorld) planClaim(name string) *corev1.PersistentVolumeClaim {
	claim := FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = name, types.UID("uid-"+name) })
	claim.Spec.Resources.Requests = Storage(Pick(w.World, "0", "1Gi", "1Gi", "1Gi", "2Gi", "2Gi", "3Gi", "1500m"))
	if w.Rarely(8) {
		claim.Spec.Resources.Requests = nil
	}
	claim.Spec.AccessModes = Modes(Pick(w.World, "O", "O", "O", "O", "O", "O", "O", "M", "M", "OM", "R"))
	claim.Spec.StorageClassName = Pick(w.World, new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("slow"))
	if w.Rarely(8) {
		noSilver := []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"silver"}}}
		claim.Spec.Selector = Pick(w.World, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, &metav1.LabelSelector{MatchExpressions: noSilver},
			&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: noSilver})
	}
	if w.Rarely(20) {
		claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	return claim
}

func (w *planWorld) planVolume(name string) *corev1.PersistentVolume {
	volume := FitVolume(name, Sized(Pick(w.World, "1Gi", "1Gi", "2Gi", "2Gi", "3Gi", "3Gi", "1500m", "1501m", "2")))
	volume.ResourceVersion = "1"
	volume.Spec.AccessModes = Modes(Pick(w.World, "O", "O", "OM", "OM", "M", "ORM"))
	volume.Spec.StorageClassName = Pick(w.World, "fast", "fast", "fast", "fast", "fast", "fast", "slow")
	volume.Labels = Pick(w.World, nil, map[string]string{"tier": "gold"}, map[string]string{"tier": "gold"}, map[string]string{"tier": "silver"})
	volume.Status.Phase = Pick(w.World, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable,
		corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumeAvailable, corev1.VolumePending, corev1.VolumeReleased)
	if w.Rarely(20) {
		volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	if !w.Rarely(2) {
		Affine(Term(Pick(w.World, Require1("zone", corev1.NodeSelectorOpIn, "a"), Require1("zone", corev1.NodeSelectorOpIn, "a"),
			Require1("zone", corev1.NodeSelectorOpIn, "a", "b"), Require1("zone", corev1.NodeSelectorOpNotIn, "b"),
			Require1("rank", corev1.NodeSelectorOpGt, "5"))))(volume)
	}
	if w.Rarely(8) {
		zone := Require1("zone", corev1.NodeSelectorOpIn, Pick(w.World, "a", "b"))
		rank := Require1("rank", corev1.NodeSelectorOpIn, Pick(w.World, "7", "8"), "9")
		Affine(Pick(w.World, []corev1.NodeSelectorTerm{Term(rank, zone)}, []corev1.NodeSelectorTerm{Term(zone), Term(rank)}, []corev1.NodeSelectorTerm{Term(zone), Term(zone, rank)})...)(volume)
	}
	w.relate(volume)
	return volume
}

// relate pre-binds some volumes to a claim of the pod, and some to another.
func (w *planWorld) relate(volume *corev1.PersistentVolume) {
	if !w.Rarely(5) {
		return
	}
	name := Pick(w.World, "c-0", "c-1", "c-2", "stranger")
	RefersTo("default", name, Pick(w.World, types.UID(""), types.UID("uid-"+name), "uid-of-earlier"))(volume)
}

func (w *planWorld) request() scheduling.Request {
	return scheduling.Request{Pod: w.pod, View: w.view, Index: w.view.Index(), Assumptions: w.assumed}
}
