package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// picture is what can be compared of a cluster: each volume ("pv a") and claim ("pvc a"), by aspect.
type picture map[string]aspects

// aspects are phase, links, annotations and capacity of an object.
type aspects struct {
	Phase       string
	Link        string // of a volume: its claim, with "?" if it is pre-bound to it, "!" if it is another by now; of a claim: its volume
	Gives       string // capacity and access modes
	Annotations string
	Finalizers  string
	Deleting    bool
}

// take takes a picture.
func (a api) take(ctx context.Context) (picture, error) {
	volumes, err := a.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	claims, err := a.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	p := picture{}
	for _, volume := range volumes.Items {
		seen := aspectsOf(&volume)
		seen.Phase, seen.Link = string(volume.Status.Phase), user(volume.Spec.ClaimRef, claims.Items)
		seen.Gives = gives(volume.Spec.Capacity, volume.Spec.AccessModes)
		p["pv "+volume.Name] = seen
	}
	for _, claim := range claims.Items {
		seen := aspectsOf(&claim)
		seen.Phase, seen.Link = string(claim.Status.Phase), claim.Spec.VolumeName
		seen.Gives = gives(claim.Status.Capacity, claim.Status.AccessModes)
		if class := claim.Status.CurrentVolumeAttributesClassName; class != nil {
			seen.Gives += " " + *class
		}
		p["pvc "+claim.Name] = seen
	}
	return p, nil
}

func aspectsOf(object metav1.Object) aspects {
	var annotations []string
	for _, name := range slices.Sorted(maps.Keys(object.GetAnnotations())) {
		annotations = append(annotations, name+"="+object.GetAnnotations()[name])
	}
	return aspects{
		Annotations: strings.Join(annotations, " "),
		Finalizers:  strings.Join(slices.Sorted(slices.Values(object.GetFinalizers())), " "),
		Deleting:    object.GetDeletionTimestamp() != nil,
	}
}

func gives(capacity corev1.ResourceList, modes []corev1.PersistentVolumeAccessMode) string {
	storage := capacity[corev1.ResourceStorage]
	return strings.TrimSpace(fmt.Sprint(storage.String(), " ", modes))
}

// in is the part of a picture that belongs to a world.
func (p picture) in(w *world) picture {
	part := picture{}
	for name, seen := range p {
		if _, rest, _ := strings.Cut(name, " "); strings.HasPrefix(rest, w.name+"-") {
			part[name] = seen
		}
	}
	return part
}

// differing lists the objects of which two pictures differ, in order.
func differing(a, b picture) []string {
	all := map[string]bool{}
	for name, seen := range a {
		if b[name] != seen {
			all[name] = true
		}
	}
	for name, seen := range b {
		if a[name] != seen {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
