package phase

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const claimUID types.UID = "claim-uid"

const (
	thisName  = "pv-this"
	otherName = "pv-other"
)

// refs is every shape a claimRef can have for the claim shop/data.
var refs = []struct {
	name  string
	ref   *corev1.ObjectReference
	state ClaimRefState
}{
	{"L1 no claimRef", nil, ClaimRefNone},
	{"L2 this claim without UID", ref("shop", "data", ""), ClaimRefPreBound},
	{"L3 this claim with its UID", ref("shop", "data", claimUID), ClaimRefBound},
	{"L4 this claim with another UID", ref("shop", "data", "older-uid"), ClaimRefStale},
	{"L5 another name without UID", ref("shop", "logs", ""), ClaimRefOther},
	{"L5 another name with UID", ref("shop", "logs", "logs-uid"), ClaimRefOther},
	{"L5 another name with this UID", ref("shop", "logs", claimUID), ClaimRefOther},
	{"L5 another namespace without UID", ref("bank", "data", ""), ClaimRefOther},
	{"L5 another namespace with UID", ref("bank", "data", "bank-uid"), ClaimRefOther},
	{"L1 no namespace, this UID", ref("", "data", claimUID), ClaimRefNone},
	{"L1 no name, this UID", ref("shop", "", claimUID), ClaimRefNone},
	{"L5 no namespace, another UID", ref("", "data", "older-uid"), ClaimRefOther},
	{"L5 empty claimRef", ref("", "", ""), ClaimRefOther},
}

func ref(namespace, name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: uid}
}

// volumes is every volume that differs in what the states depend on.
func volumes() []*corev1.PersistentVolume {
	var all []*corev1.PersistentVolume
	for _, shape := range refs {
		for _, policy := range policies {
			for _, annotations := range volumeAnnotations {
				for _, phase := range volumePhases {
					volume := newVolume(shape.ref)
					volume.Annotations = annotations
					volume.Spec.PersistentVolumeReclaimPolicy = policy
					volume.Status.Phase = phase
					all = append(all, volume)
				}
			}
		}
	}
	return all
}

func newVolume(ref *corev1.ObjectReference) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: thisName},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: ref.DeepCopy()},
	}
}

var policies = []corev1.PersistentVolumeReclaimPolicy{
	corev1.PersistentVolumeReclaimRetain,
	corev1.PersistentVolumeReclaimDelete,
	corev1.PersistentVolumeReclaimRecycle,
	"",
	"Shred",
}

var volumeAnnotations = []map[string]string{
	nil,
	{ProvisionedByAnnotation: "ebs.csi.aws.com"},
	{ProvisionedByAnnotation: ""},
	{BoundByControllerAnnotation: "yes"},
	{BoundByControllerAnnotation: "", ProvisionedByAnnotation: "kubernetes.io/aws-ebs"},
}

var volumePhases = []corev1.PersistentVolumePhase{
	"",
	corev1.VolumePending,
	corev1.VolumeAvailable,
	corev1.VolumeBound,
	corev1.VolumeReleased,
	corev1.VolumeFailed,
}

// claims is every claim shop/data that differs in what the states depend on.
func claims() []*corev1.PersistentVolumeClaim {
	var all []*corev1.PersistentVolumeClaim
	for _, volumeName := range []string{"", thisName, otherName} {
		for _, annotations := range claimAnnotations {
			for _, deleted := range []*metav1.Time{nil, {}} {
				for _, phase := range claimPhases {
					claim := newClaim(volumeName)
					claim.Annotations = annotations
					claim.DeletionTimestamp = deleted
					claim.Status.Phase = phase
					all = append(all, claim)
				}
			}
		}
	}
	return all
}

func newClaim(volumeName string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: claimUID},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volumeName},
	}
}

var claimAnnotations = []map[string]string{
	nil,
	{BindCompletedAnnotation: "yes"},
	{BindCompletedAnnotation: ""},
	{BoundByControllerAnnotation: "yes"},
	{BoundByControllerAnnotation: "no", BindCompletedAnnotation: "no"},
}

var claimPhases = []corev1.PersistentVolumeClaimPhase{
	"",
	corev1.ClaimPending,
	corev1.ClaimBound,
	corev1.ClaimLost,
}
