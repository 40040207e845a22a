package main

import (
	"bytes"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// list is the volumes and claims as one v1 List, the way `kubectl get pv,pvc -A` gives them.
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

func placedLines(pods []placedPod) string {
	var text bytes.Buffer
	for _, p := range pods {
		fmt.Fprintf(&text, "%s is on %s\n", p.pod, p.node)
	}
	return text.String()
}

func waitingLines(pods []waitingPod) string {
	var text bytes.Buffer
	for _, p := range pods {
		fmt.Fprintf(&text, "%s: %s\n", p.pod, dump.OneLine(p.why))
	}
	return text.String()
}
