package main

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sameStorage names the other volumes that stand for the same storage.
func (w *world) sameStorage(volume *corev1.PersistentVolume) []string {
	if w.storages == nil {
		w.storages = map[string][]string{}
		for _, v := range w.Volumes {
			key := storageOf(v)
			w.storages[key] = append(w.storages[key], v.Name)
		}
	}
	others := slices.Clone(w.storages[storageOf(volume)])
	return slices.DeleteFunc(others, func(name string) bool { return name == volume.Name })
}

// storageOf tells storages apart: by driver and handle, or by all that is said of the source and where it is.
func storageOf(volume *corev1.PersistentVolume) string {
	if csi := volume.Spec.CSI; csi != nil {
		return csi.Driver + " " + csi.VolumeHandle
	}
	text, err := json.Marshal([]any{volume.Spec.PersistentVolumeSource, volume.Spec.NodeAffinity})
	if err != nil {
		return volume.Name
	}
	return string(text)
}
