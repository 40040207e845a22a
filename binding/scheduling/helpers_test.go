package scheduling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// planning is a pod and what is known when it is planned, by default default/web with the claim default/data of
// the class fast, that waits for a pod and provisions nothing.
type planning struct {
	pod     *corev1.Pod
	objects []obj.Object
}

const csiDriver = "csi.example.com"

func podPlanning(objects ...obj.Object) planning {
	return planning{pod: PodUsing("web"), objects: objects}
}

func manualClass() *storagev1.StorageClass {
	return ClassOf("fast", "kubernetes.io/no-provisioner", WaitsForFirstConsumer)
}

func csiClass(edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return ClassOf("fast", csiDriver, append([]func(*storagev1.StorageClass){WaitsForFirstConsumer}, edits...)...)
}

func allowedIn(zones ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: zones}}}}
	}
}

func capacityDriver(tells bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: csiDriver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &tells}}
}

// capacityIn is so much storage of class fast, for the nodes of a zone.
func capacityIn(zone, free string, edits ...func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
	capacity := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cap-" + zone + "-" + strings.ToLower(free)}, StorageClassName: "fast"}
	capacity.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}}
	capacity.Capacity = quantity(free)
	for _, edit := range edits {
		edit(capacity)
	}
	return capacity
}

func quantity(text string) *resource.Quantity { return new(resource.MustParse(text)) }

// claimNamed is another claim of the pod.
func claimNamed(name string, edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
	stored := func(c *corev1.PersistentVolumeClaim) {
		c.Name, c.UID, c.ResourceVersion = name, types.UID("uid-of-"+name), "7"
		c.Status.Phase = corev1.ClaimPending
	}
	return FitClaim(append([]ClaimEdit{stored}, edits...)...)
}

// storedVolume is FitVolume as a server has it.
func storedVolume(name string, edits ...VolumeEdit) *corev1.PersistentVolume {
	return FitVolume(name, append([]VolumeEdit{func(v *corev1.PersistentVolume) { v.UID, v.ResourceVersion = types.UID("uid-of-"+name), "8" }}, edits...)...)
}

func (p planning) view() scheduling.Snapshot {
	view := scheduling.Snapshot{Snapshot: Knowing(p.objects...)}
	for _, object := range p.objects {
		switch object := object.(type) {
		case *storagev1.CSIDriver:
			view.CSIDrivers = append(view.CSIDrivers, object)
		case *storagev1.CSIStorageCapacity:
			view.Capacities = append(view.Capacities, object)
		case *storagev1.CSINode:
			view.CSINodes = append(view.CSINodes, object)
		}
	}
	return view
}

func (p planning) request() scheduling.Request {
	view := p.view()
	return scheduling.Request{Pod: p.pod, View: view, Index: view.Index()}
}

func (p planning) on(t *testing.T, node *corev1.Node) scheduling.Plan {
	t.Helper()
	plan, err := scheduling.PlanPod(p.request(), node)
	require.NoError(t, err)
	return plan
}

// planText is a plan in one line: what each claim gets, or the causes why not.
func planText(plan scheduling.Plan) string {
	var parts []string
	for _, b := range plan.Bindings {
		parts = append(parts, b.Claim.Name+" "+b.Volume.Name)
	}
	for _, p := range plan.Provisions {
		part := p.Claim.Name + " provision"
		if p.Capacity != nil {
			part += " from " + p.Capacity.Name
		}
		parts = append(parts, part)
	}
	for _, reason := range slices.Concat(plan.Refused, plan.Reasons) {
		parts = append(parts, strings.TrimSpace(reason.Claim.Name+" "+string(reason.Cause)+" "+reason.Volume))
	}
	return strings.Join(parts, ", ")
}

// podWith is default/web with these claims.
func podWith(claims ...string) *corev1.Pod {
	pod := PodUsing("web")
	pod.Spec.Volumes = nil
	for _, name := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "vol-" + name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	return pod
}
