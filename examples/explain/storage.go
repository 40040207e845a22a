package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sameStorage names the other volumes that stand for the same storage.
func (w *world) sameStorage(volume *corev1.PersistentVolume) []string {
	others := slices.Clone(w.storedWith(volume))
	return slices.DeleteFunc(others, func(name string) bool { return name == volume.Name })
}

// sameStorageText names some of them, for there may be very many: "twin-2", "a, b, c and 40 others"; "" if there are
// none.
func (w *world) sameStorageText(volume *corev1.PersistentVolume) string {
	all := w.storedWith(volume)
	var names []string
	for _, name := range all {
		if name != volume.Name && len(names) < shown {
			names = append(names, name)
		}
	}
	text := strings.Join(names, ", ")
	if more := len(all) - 1 - len(names); more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return text
}

// storedWith names the volumes that stand for the storage of this one, itself among them.
func (w *world) storedWith(volume *corev1.PersistentVolume) []string {
	if w.storages == nil {
		w.storages = map[string][]string{}
		for _, v := range w.Volumes {
			key := storageOf(v)
			w.storages[key] = append(w.storages[key], v.Name)
		}
	}
	return w.storages[storageOf(volume)]
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
