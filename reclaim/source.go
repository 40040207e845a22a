package reclaim

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SourceName returns which kind of storage the volume is, by the name of the field
// of its spec that says so: "hostPath", "nfs", "csi", "local" and so on. It is ""
// if no such field is set, and the first in the order of the API if several are,
// which the API server does not admit.
func SourceName(volume *corev1.PersistentVolume) string {
	// By reflection, for a list of the fields kept here would miss new ones.
	source := reflect.ValueOf(&volume.Spec.PersistentVolumeSource).Elem()
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}
