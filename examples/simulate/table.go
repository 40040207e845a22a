package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// table lays rows out in columns, the first row being the heads.
func table(rows [][]string) string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// volumeTable is what `kubectl get pv` prints, but for the age: nothing here takes time.
func volumeTable(volumes []*corev1.PersistentVolume) string {
	rows := [][]string{{"NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "REASON"}}
	for _, volume := range volumes {
		rows = append(rows, []string{
			"persistentvolume/" + volume.Name,
			storage(volume.Spec.Capacity),
			accessModes(volume.Spec.AccessModes),
			string(volume.Spec.PersistentVolumeReclaimPolicy),
			status(volume, string(volume.Status.Phase)),
			claimOf(volume),
			className(volume.Annotations, volume.Spec.StorageClassName),
			attributesClass(volume.Spec.VolumeAttributesClassName),
			dump.OneLine(volume.Status.Reason),
		})
	}
	return table(rows)
}

// claimTable is what `kubectl get pvc -A` prints, but for the age.
func claimTable(claims []*corev1.PersistentVolumeClaim) string {
	rows := [][]string{{"NAMESPACE", "NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS"}}
	for _, claim := range claims {
		row := []string{claim.Namespace, "persistentvolumeclaim/" + claim.Name, status(claim, string(claim.Status.Phase)), claim.Spec.VolumeName, "", ""}
		if claim.Spec.VolumeName != "" {
			row[4], row[5] = storage(claim.Status.Capacity), accessModes(claim.Status.AccessModes)
		}
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		rows = append(rows, append(row, className(claim.Annotations, class), attributesClass(claim.Spec.VolumeAttributesClassName)))
	}
	return table(rows)
}

// eventTable lists events in the order in which they were sent.
func eventTable(events []binding.Event) string {
	rows := [][]string{{"TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, event := range events {
		rows = append(rows, []string{event.Type, string(event.Reason), event.On.String(), dump.OneLine(event.Message)})
	}
	return table(rows)
}

func status(object obj.Object, phase string) string {
	if object.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return phase
}

func storage(list corev1.ResourceList) string {
	quantity, ok := list[corev1.ResourceStorage]
	if !ok {
		return ""
	}
	return quantity.String()
}

func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	set, err := accessmode.Of(modes...)
	if err != nil {
		return "<invalid>"
	}
	return set.String()
}

func claimOf(volume *corev1.PersistentVolume) string {
	if ref := volume.Spec.ClaimRef; ref != nil {
		return ref.Namespace + "/" + ref.Name
	}
	return ""
}

func className(annotations map[string]string, field string) string {
	return cmp.Or(annotations[corev1.BetaStorageClassAnnotation], field)
}

func attributesClass(name *string) string {
	if name == nil {
		return "<unset>"
	}
	return *name
}
