package scheduling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// podWithScratch is default/web with the generic ephemeral volume scratch.
func podWithScratch() *corev1.Pod {
	pod := podWith()
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	return pod
}

func ownedByPod(pod *corev1.Pod) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
}

// S1: claims that a pod names and cannot have, in both ways of asking.
func TestPlanPodErrors(t *testing.T) {
	pod := podWithScratch()
	noMode := ClassOf("fast", csiDriver, func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil })
	malformed := claimNamed("data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
	})
	for name, c := range map[string]struct {
		planning
		want string
	}{
		"S1 absent":                      {podPlanning(), "pod/default/web: the claim pvc/default/data does not exist"},
		"S1 absent beside a refused one": {planning{podWith("a", "data"), []obj.Object{claimNamed("a", ClaimBeingDeleted)}}, "pod/default/web: the claim pvc/default/data does not exist"},
		"S1 absent, ephemeral":           {planning{pod: pod}, "pod/default/web: the claim pvc/default/web-scratch does not exist"},
		"S1 ephemeral, not the pod's": {planning{pod, []obj.Object{claimNamed("web-scratch"), manualClass()}},
			"pvc/default/web-scratch: metadata.ownerReferences: does not name pod/default/web as its controller"},
		"S2 a class without a mode": {podPlanning(claimNamed("data"), noMode), "storageclass/fast: volumeBindingMode: neither Immediate nor WaitForFirstConsumer"},
		"X7 a malformed selector":   {podPlanning(malformed, manualClass()), `pvc/default/data: spec.selector: "Near" is not a valid label selector operator`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scheduling.PlanPod(c.request(), NodeIn("a"))
			require.EqualError(t, err, c.want)
			_, err = scheduling.PlanPodOnNodes(c.request(), []*corev1.Node{NodeIn("a")})
			require.EqualError(t, err, c.want)
		})
	}
	_, err := scheduling.PlanPod(podPlanning().request(), NodeIn("a"))
	var absent *scheduling.AbsentError
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, DataKey, absent.Claim)
}

func TestPlanPodEphemeral(t *testing.T) {
	pod := podWithScratch()
	mine := planning{pod, []obj.Object{claimNamed("web-scratch", ownedByPod(pod)), manualClass(), storedVolume("pv-a")}}
	assert.Equal(t, "web-scratch pv-a", planText(mine.on(t, NodeIn("a"))), "S1 owned by the pod")
}

// A plan without an Index has no volumes to choose from.
func TestPlanPodWithoutIndex(t *testing.T) {
	view := podPlanning(claimNamed("data"), csiClass()).view()
	plan, err := scheduling.PlanPod(scheduling.Request{Pod: PodUsing("web"), View: view}, NodeIn("a"))
	require.NoError(t, err)
	assert.Equal(t, "data provision", planText(plan))
}

// S9, E2: a reason tells what became of the volumes.
func TestPlanPodReasonText(t *testing.T) {
	for name, c := range map[string]struct {
		planning
		want string
	}{
		"S1 Lost": {podPlanning(claimNamed("data", ClaimPhase(corev1.ClaimLost), Naming("pv-a"))),
			"pvc/default/data, pv/pv-a: ClaimLost: the claim has lost its volume"},
		"S1 being deleted": {podPlanning(claimNamed("data", ClaimBeingDeleted)),
			"pvc/default/data: ClaimDeleting: the claim is being deleted"},
		"S2 Immediate": {podPlanning(claimNamed("data"), ClassOf("fast", csiDriver)),
			"pvc/default/data: ClaimUnbound: the claim is to be bound without regard to the node, and is not yet bound"},
		"S2 a volume is named": {podPlanning(claimNamed("data", Naming("pv-a")), csiClass()),
			"pvc/default/data, pv/pv-a: ClaimUnbound: the claim names a volume and is not yet bound to it"},
		"S5 an absent class is named": {podPlanning(claimNamed("data")),
			"pvc/default/data: ClaimUnbound: the claim is not bound, and its class fast does not exist"},
		"S3 absent": {podPlanning(claimNamed("data", BoundTo("pv-a"))),
			"pvc/default/data, pv/pv-a: VolumeAbsent: the volume that the claim is bound to does not exist"},
		"S3": {podPlanning(claimNamed("data", BoundTo("pv-a")), storedVolume("pv-a", OnlyIn("b"))),
			"pvc/default/data, pv/pv-a: VolumeElsewhere: the volume is for nodes with zone In [b]"},
		"S4 E2": {podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", OnlyIn("b")), storedVolume("pv-b", Sized("5Gi"))),
			"pvc/default/data: NoVolume: class fast provisions none; 0/2 volumes fit: 1 TooSmall (largest 5Gi), 1 NodeAffinity; " +
				"pv-b would fit but for its size: 5Gi, the claim requests 10Gi"},
		"S6": {planning{podWith("data", "logs"), []obj.Object{claimNamed("data", Requesting("9Gi")), claimNamed("logs"), manualClass(), storedVolume("pv-a")}},
			"pvc/default/data, pv/pv-a: Contended: the volumes that fit the claim are needed by other claims of the pod"},
		"S5": {podPlanning(claimNamed("data"), csiClass(allowedIn("b"))),
			"pvc/default/data: Topology: class fast does not allow volumes to be provisioned for the node; 0/0 volumes fit: there are none"},
		"S5 storage": {podPlanning(claimNamed("data"), csiClass(), capacityDriver(true)),
			"pvc/default/data: Storage: no storage of class fast that the node can use has room for a volume of this size; 0/0 volumes fit: there are none"},
		"M13": {podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", RefersTo("default", "data", ""), OnlyIn("b"))),
			"pvc/default/data, pv/pv-a: PreBoundElsewhere: the volume is pre-bound to the claim and cannot be used on the node; 0/1 volumes fit: 1 NodeAffinity; " +
				"pv-a is pre-bound to the claim, and would fit but for its node affinity: zone In [b], the claim requests node node-a"},
		"M13 others would fit": {podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", RefersTo("default", "data", ""), OnlyIn("b")), storedVolume("pv-b")),
			"pvc/default/data, pv/pv-a: PreBoundElsewhere: the volume is pre-bound to the claim and cannot be used on the node; 1/2 volumes fit: none chosen; " +
				"1 NodeAffinity; pv-a is pre-bound to the claim, and would fit but for its node affinity: zone In [b], the claim requests node node-a"},
		"S4": {podPlanning(claimNamed("data", ClaimNote(SelectedNode, "node-b")), csiClass()),
			"pvc/default/data: ProvisionedElsewhere: its volume is being provisioned for node node-b"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := c.on(t, NodeIn("a"))
			reasons := slices.Concat(plan.Refused, plan.Reasons)
			require.Len(t, reasons, 1)
			assert.Equal(t, c.want, reasons[0].String())
		})
	}
}

// E2: a near miss is a volume of the node, and none is for a class that provisions, but for one that is pre-bound elsewhere.
func TestPlanPodNearMiss(t *testing.T) {
	gone := []VolumeEdit{RefersTo("default", "data", ""), BeingDeleted}
	elsewhere := storedVolume("pv-b", OnlyIn("b"))
	tooSmall := []VolumeEdit{Sized("5Gi")}
	selecting := claimNamed("data", RequestingLabel("disk", "quick"))
	for name, c := range map[string]struct {
		planning
		want string
	}{
		"of another node":              {podPlanning(claimNamed("data"), manualClass(), elsewhere), "0/1 volumes fit: 1 NodeAffinity"},
		"of this node, by far":         {podPlanning(claimNamed("data"), manualClass(), elsewhere, storedVolume("pv-a", OnlyIn("a"), Sized("1Gi"), OfClass("slow"))), "pv-a would fit but for its size: 1Gi, the claim requests 10Gi; its class: \"slow\", the claim requests \"fast\""},
		"of any node":                  {podPlanning(claimNamed("data"), manualClass(), elsewhere, storedVolume("pv-a", tooSmall...)), "pv-a would fit but for its size: 5Gi, the claim requests 10Gi"},
		"of another node, its label":   {podPlanning(selecting, manualClass(), storedVolume("pv-a", OnlyIn("b")), storedVolume("pv-b", OnlyIn("b"), Labelled("disk", "quick"))), "0/2 volumes fit: 1 Selector, 1 NodeAffinity"},
		"of this node, its label":      {podPlanning(selecting, manualClass(), storedVolume("pv-a", OnlyIn("a")), storedVolume("pv-b", OnlyIn("b"), Labelled("disk", "quick"))), "pv-a would fit but for its labels: none, the claim requests disk=quick"},
		"that goes":                    {podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", gone...)), "0/1 volumes fit: 1 Deleting"},
		"a class that provisions":      {podPlanning(claimNamed("data"), csiClass(allowedIn("b")), storedVolume("pv-a", tooSmall...)), "0/1 volumes fit: 1 TooSmall (largest 5Gi)"},
		"a class that provisions, M13": {podPlanning(claimNamed("data"), csiClass(allowedIn("b")), storedVolume("pv-a", RefersTo("default", "data", ""), OnlyIn("b"))), "pv-a is pre-bound to the claim, and would fit but for its node affinity: zone In [b], the claim requests node node-a"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := c.on(t, NodeIn("a"))
			require.Len(t, plan.Reasons, 1)
			_, found, _ := strings.Cut(plan.Reasons[0].Detail, "; ")
			_, nearest, named := strings.Cut(found, "; ")
			assert.Equal(t, c.want, map[bool]string{true: nearest, false: found}[named])
		})
	}
}

// X6: to compare quantities changes how one is held that does not fit 64 bits, and one of a capacity is everybody's.
func TestPlanPodLeavesCapacitiesAlone(t *testing.T) {
	capacity := capacityIn("a", "10Gi")
	before := capacity.DeepCopy()
	plan := podPlanning(claimNamed("data", Requesting("12345678901234567890123")), csiClass(), capacityDriver(true), capacity).on(t, NodeIn("a"))
	require.False(t, plan.Fits())
	require.Equal(t, before, capacity)
}
