package reclaim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// successor is the claim to create: the one asked for, or a copy of the one that has the volume, which may be nil. It
// names the volume, so that it takes no other, and no provisioner is asked (C6 to C8).
func successor(to, from *corev1.PersistentVolumeClaim, volume string) corev1.PersistentVolumeClaim {
	heir := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:   to.Namespace,
		Name:        to.Name,
		Labels:      to.Labels,
		Annotations: personal(to.Annotations),
	}}
	model := to
	if copies(to) && from != nil {
		model = from
		heir.Labels = joined(from.Labels, to.Labels)
		heir.Annotations = joined(personal(from.Annotations), heir.Annotations)
	}
	heir.Spec = model.Spec
	if !storageclass.Unset(model) { // an annotation may have it, which is not copied
		heir.Spec.StorageClassName = new(storageclass.OfClaim(model))
	}
	heir.Spec.VolumeName = volume
	heir.Spec.DataSource, heir.Spec.DataSourceRef = nil, nil // the data is there
	return *heir.DeepCopy()
}

// copies reports whether the claim only says where to.
func copies(to *corev1.PersistentVolumeClaim) bool { return len(to.Spec.AccessModes) == 0 }

// personal leaves out the annotations that controllers and kubectl keep about one object.
func personal(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		domain, _, _ := strings.Cut(key, "/")
		switch domain {
		case "pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io", "kubectl.kubernetes.io", "pvbind.github.io":
		default:
			kept[key] = value
		}
	}
	return kept
}

// joined has what is in either; over wins.
func joined(under, over map[string]string) map[string]string {
	all := map[string]string{}
	for _, some := range []map[string]string{under, over} {
		for key, value := range some {
			all[key] = value
		}
	}
	return all
}
