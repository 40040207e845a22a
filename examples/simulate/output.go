package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pvbind/pvbind/binding/scheduling"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// list returns the volumes and claims as one v1 List, as `kubectl get pv,pvc -A` prints them.
func (r result) list() *corev1.List {
	list := &corev1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"},
		Items:    []runtime.RawExtension{}, // never null
	}
	add := func(object obj.Object, kind string) {
		object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		object.SetManagedFields(nil)
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	for _, volume := range r.Volumes {
		add(volume.DeepCopy(), "PersistentVolume")
	}
	for _, claim := range r.Claims {
		add(claim.DeepCopy(), "PersistentVolumeClaim")
	}
	return list
}

// writeTables prints volumes and claims, why claims are not Bound, what became of pods, and the events.
func (r result) writeTables(w io.Writer) {
	var sections []string
	if len(r.Volumes) > 0 {
		sections = append(sections, volumeTable(r.Volumes))
	}
	if len(r.Claims) > 0 {
		sections = append(sections, claimTable(r.Claims))
	}
	if len(sections) == 0 {
		sections = append(sections, "No resources found\n")
	}
	if reasons := r.reasons(); len(reasons) > 0 {
		sections = append(sections, "Claims not Bound:\n"+reasonLines(reasons))
	}
	if len(r.placed) > 0 {
		sections = append(sections, "Pods placed:\n"+placedLines(r.placed))
	}
	if len(r.blocked) > 0 {
		sections = append(sections, "Pods that had a node and cannot mount all their volumes:\n"+placedLines(r.blocked))
	}
	if len(r.waiting) > 0 {
		sections = append(sections, "Pods not placed:\n"+waitingLines(r.waiting))
	}
	if len(r.events) > 0 {
		sections = append(sections, "Events:\n"+eventTable(r.events))
	}
	for i, section := range sections {
		if i > 0 {
			fmt.Fprintln(w)
		}
		io.WriteString(w, section)
	}
}

func reasonLines(reasons []reason) string {
	var text bytes.Buffer
	for _, r := range reasons {
		fmt.Fprintf(&text, "%s is %s: %s\n", obj.KeyOf(r.claim), status(r.claim, string(r.claim.Status.Phase)), dump.OneLine(r.text))
	}
	return text.String()
}

// placedLines says where each pod is and, in a line below for each of its volumes, whether that may be mounted there.
func placedLines(pods []placedPod) string {
	var text bytes.Buffer
	for _, p := range pods {
		fmt.Fprintf(&text, "%s is on %s\n", podKey(p.Pod), p.Spec.NodeName)
		for _, v := range p.volumes {
			fmt.Fprintf(&text, "    volume %s: %s\n", v.Name, dump.OneLine(mountLine(v)))
		}
	}
	return text.String()
}

// mountLine says whether a volume of a pod may be mounted and, if not, what that waits for.
func mountLine(v scheduling.PodVolume) string {
	if !v.Ready() {
		return "not to be mounted yet: " + v.Wait.String()
	}
	line := obj.VolumeKey(v.Volume.Name).String() + " may be mounted"
	if v.ReadOnly {
		line += " read-only"
	}
	return line
}

func waitingLines(pods []waitingPod) string {
	var text bytes.Buffer
	for _, p := range pods {
		fmt.Fprintf(&text, "%s: %s\n", p.pod, dump.OneLine(p.why))
	}
	return text.String()
}

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

// volumeTable returns what `kubectl get pv` prints, but for the age: nothing here takes time.
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

// claimTable returns what `kubectl get pvc -A` prints, but for the age.
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

// eventTable returns events in the order in which they were sent.
func eventTable(events []decision.Event) string {
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

// encode writes the object as JSON or YAML.
func encode(w io.Writer, object runtime.Object, format format) error {
	options := json.SerializerOptions{Yaml: format == formatYAML, Pretty: format == formatJSON}
	err := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, options).Encode(object, w)
	if err == nil && format == formatJSON {
		_, err = io.WriteString(w, "\n")
	}
	return err
}
