package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
