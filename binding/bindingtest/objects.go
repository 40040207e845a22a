package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// Volume returns a volume to create: ReadWriteOnce, of no class, on a path of its own. Changes are made
// to it in order. It panics if size is not a quantity.
func Volume(name, size string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/" + name},
			},
		},
	}
	return changed(volume, changes)
}

// Claim returns a claim to create: ReadWriteOnce, leaving the class to the default class, if any.
// Changes are made to it in order. It panics if size is not a quantity.
func Claim(namespace, name, size string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	return changed(claim, changes)
}

// Class returns a class to create, for volumes that a person makes. Changes are made to it in order.
func Class(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: "kubernetes.io/no-provisioner",
	}
	return changed(class, changes)
}

// DefaultClass returns a class to create as a cloud has it: the default one, whose storage the CSI driver makes once a pod that
// uses the claim has a node (WaitForFirstConsumer). Changes are made to it in order.
func DefaultClass(name, driver string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name, Annotations: map[string]string{storageclass.IsDefaultAnnotation: "true"}},
		Provisioner:       driver,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	return changed(class, changes)
}

// Node returns a node to create in a zone.
func Node(name, zone string, changes ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone},
	}}
	return changed(node, changes)
}

// Pod returns a pod to create that runs on the node, nowhere if node is empty, and uses the claims. When it is
// deleted it goes at once.
func Pod(namespace, name, node string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			Containers:                    []corev1.Container{{Name: "main", Image: "none"}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	for _, claim := range claims {
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name:         claim,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source},
		})
	}
	return pod
}

// Attachment returns a VolumeAttachment to create that attaches the volume to the node: "VOLUME-NODE".
func Attachment(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com",
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
			NodeName: node,
		},
	}
}

func changed[T any](object T, changes []func(T)) T {
	for _, change := range changes {
		change(object)
	}
	return object
}
