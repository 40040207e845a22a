package main

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// merged applies a merge patch as RFC 7386 says.
func merged(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, _ := target[key].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			target[key] = merged(inner, value)
		default:
			target[key] = value
		}
	}
	return target
}

var inQuotes = regexp.MustCompile(`(?s)^kubectl patch pv disk --type=merge -p '(.*)'$`)

func TestPatchMakesTheOneOfTheOther(t *testing.T) {
	before := bindingtest.Volume("disk", "1Gi")
	before.ResourceVersion = "7"
	before.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes", "keep": "me"}
	before.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "old", ResourceVersion: "3"}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"another UID": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "new", "" },
		"no claimRef": func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Annotations = nil, map[string]string{"keep": "me"}
		},
		"a list":             func(v *corev1.PersistentVolume) { v.Finalizers = []string{"a", "b"} },
		"a quote":            func(v *corev1.PersistentVolume) { v.Annotations["it's"] = `a "quote"` },
		"nothing":            func(*corev1.PersistentVolume) {},
		"what was not there": func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"tier": "gold"} },
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			change(after)
			found := inQuotes.FindStringSubmatch(patchCommand(before, after))
			require.Len(t, found, 2)
			var patch map[string]any
			require.NoError(t, json.Unmarshal([]byte(regexp.MustCompile(`'\\''`).ReplaceAllString(found[1], "'")), &patch))
			assert.Equal(t, "7", patch["metadata"].(map[string]any)["resourceVersion"], "B5: it fails if somebody was faster")
			assert.Equal(t, fieldsOf(after), merged(fieldsOf(before), patch))
		})
	}
}

func TestVolumesOfTheSameStorage(t *testing.T) {
	csi := func(driver, handle string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, FSType: v.Name}}
		}
	}
	on := func(node string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		}
	}
	path := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}
	}
	a, b, c := bindingtest.Volume("a", "1Gi", csi("x", "1")), bindingtest.Volume("b", "2Gi", csi("x", "1")), bindingtest.Volume("c", "1Gi", csi("y", "1"))
	here, there := bindingtest.Volume("here", "1Gi", path, on("one")), bindingtest.Volume("there", "1Gi", path, on("two"))
	w := newWorld(nil, newProgress(nil, time.Now))
	w.Volumes = []*corev1.PersistentVolume{a, b, c, here, there}
	assert.Equal(t, []string{"b"}, w.sameStorage(a), "whatever else differs")
	assert.Empty(t, w.sameStorage(c), "another driver")
	assert.Empty(t, w.sameStorage(here), "the same path on another node")
}
