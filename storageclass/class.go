package storageclass

import (
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// inTreePrefix begins the name of every provisioner that is, or was, compiled
// into Kubernetes.
const inTreePrefix = "kubernetes.io/"

// IsDefault reports whether the class is marked as a default class.
func IsDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[IsDefaultAnnotation] == "true" ||
		class.Annotations[BetaIsDefaultAnnotation] == "true"
}

// Default returns the class that claims without a class get (rule C2): of those
// marked as default the newest, and of several created in the same second the
// first by name. It is nil if none is marked.
func Default(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var best *storagev1.StorageClass
	for _, class := range classes {
		if IsDefault(class) && (best == nil || preferred(class, best)) {
			best = class
		}
	}
	return best
}

func preferred(class, other *storagev1.StorageClass) bool {
	created, otherCreated := class.CreationTimestamp.Time, other.CreationTimestamp.Time
	if created.Equal(otherCreated) {
		return class.Name < other.Name
	}
	return created.After(otherCreated)
}

// Delayed reports whether claims of the class are bound only once a pod that uses
// them is scheduled (rule M11). A class that does not exist, nil, binds at once.
// A class without a volumeBindingMode, or with one the Kubernetes API does not
// define, is an error that names the class and the field.
func Delayed(class *storagev1.StorageClass) (bool, error) {
	if class == nil {
		return false, nil
	}
	mode := class.VolumeBindingMode
	if mode == nil {
		return false, fmt.Errorf("storageclass/%s: volumeBindingMode: is missing", class.Name)
	}
	switch *mode {
	case storagev1.VolumeBindingImmediate:
		return false, nil
	case storagev1.VolumeBindingWaitForFirstConsumer:
		return true, nil
	}
	return false, fmt.Errorf("storageclass/%s: volumeBindingMode: unknown: %q", class.Name, string(*mode))
}

// Provisions reports whether volumes can be made for claims of the class: it
// exists and names a provisioner other than [NoProvisioner] (rules P1 and S5).
func Provisions(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner != "" && class.Provisioner != NoProvisioner
}

// InTree reports whether the provisioner is, or was, compiled into Kubernetes,
// which its name tells. [NoProvisioner] counts.
func InTree(provisioner string) bool {
	return strings.HasPrefix(provisioner, inTreePrefix)
}
