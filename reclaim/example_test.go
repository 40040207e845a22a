package reclaim_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

func Example() {
	options := reclaim.Options{SourceDeleters: sets.New("hostPath")}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/srv/data"},
			},
		},
	}
	decision := reclaim.Decide(volume, options)
	fmt.Println(decision.Action, decision.Hook+":", decision.Message)

	volume.Annotations = map[string]string{phase.ProvisionedByAnnotation: "ebs.csi.aws.com"}
	decision = reclaim.Decide(volume, options)
	fmt.Println(decision.Action+":", decision.Message)

	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	decision = reclaim.Decide(volume, options)
	fmt.Println(decision.Action+":", decision.Message)
	// Output:
	// RunDeleter hostPath: the deleter for hostPath volumes deletes it
	// LeaveToProvisioner: external provisioner "ebs.csi.aws.com", which made it, deletes it
	// Keep: its reclaim policy is Retain
}

// A claim that is deleted while a pod uses it stays until the pod is gone.
func ExampleClaimReleasable() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Volumes: []corev1.Volume{{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "orders"},
				},
			}},
		},
	}
	now := metav1.Now()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "orders",
			DeletionTimestamp: &now,
			Finalizers:        []string{reclaim.ClaimProtection},
		},
	}
	fmt.Println("with the pod:", reclaim.ClaimReleasable(claim, []*corev1.Pod{pod}))
	fmt.Println("without it:  ", reclaim.ClaimReleasable(claim, nil))
	// Output:
	// with the pod: false
	// without it:   true
}
