package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// Volumes that all stand for one export are told of briefly, and together.
func TestManyVolumesOfOneStorage(t *testing.T) {
	var input, stdout, stderr strings.Builder
	for i := range 200 {
		fmt.Fprintf(&input, sharedVolume, i, i, i, i)
	}
	env := environment{program: "explain", stdin: strings.NewReader(input.String()), stdout: &stdout, stderr: &stderr, now: time.Now}
	assert.Equal(t, dump.ExitOK, env.run([]string{"-o", "json"}), stderr.String())
	assert.Contains(t, stdout.String(), "its storage is also that of v-000, v-001, v-002 and 196 others: ")
	assert.Equal(t, 4, strings.Count(stdout.String(), "its storage is also that of"), "the first three are named by all but themselves")
}

const sharedVolume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: v-%03d, uid: v%d, resourceVersion: "1"}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: old, name: c-%d, uid: c%d}
  nfs: {server: files.example.com, path: /export}
  persistentVolumeReclaimPolicy: Retain
status: {phase: Released}
---
apiVersion: v1
kind: Pod
metadata: {namespace: other, name: p-%[1]d}
spec: {nodeName: node, containers: [{name: main, image: main}]}
---
`

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
	all := newCluster(nil, newProgress(nil, time.Now))
	all.Volumes = []*corev1.PersistentVolume{a, b, c, here, there}
	assert.Equal(t, []string{"b"}, all.sameStorage(a), "whatever else differs")
	assert.Empty(t, all.sameStorage(c), "another driver")
	assert.Empty(t, all.sameStorage(here), "the same path on another node")
}
