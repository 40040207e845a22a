package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

const newClaim = `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "new", "namespace": "shop"},
 "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
`

const handmadeVolume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: a, uid: u1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /a}
`

const handmadeClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, uid: u2}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

func runWith(stdin string, args ...string) programtest.Outcome {
	return programtest.Run(func(stdout, stderr io.Writer) int { return run(args, strings.NewReader(stdin), stdout, stderr) })
}

func TestRun(t *testing.T) {
	const dumped, manifests, halfway, bad = "testdata/dump.yaml", "testdata/manifests.yaml", "testdata/halfway.yaml", "testdata/bad.yaml"
	programtest.Calls(t, "simulate", runWith, map[string]programtest.Call{
		"walkthrough":            {},
		"walkthrough-json-trace": {Args: []string{"-o", "json", "-trace"}},
		"dump":                   {Args: []string{dumped}},
		"dump-json":              {Args: []string{"-o", "json", dumped}},
		"dump-yaml":              {Args: []string{"-o=yaml", dumped}},
		"dump-deletes": {Args: []string{"-trace", "-delete", "pvc/shop/data-db-0", "-delete", "pod/shop/db-0",
			"-delete", "pv/local-a", "-delete", "pod/monitoring/prometheus-0", "-delete", "persistentvolumeclaims/monitoring/tsdb", dumped}},
		"dump-in-use":          {Args: []string{"-delete", "pvc/shop/data-db-0", "-delete", "pv/local-a", dumped}},
		"dump-and-new-claim":   {Args: []string{dumped, "-", "-trace"}, Stdin: newClaim},
		"manifests":            {Args: []string{manifests, "-trace"}},
		"manifests-delete":     {Args: []string{"-delete", "pod/team/app", "-delete", "pvc/team/shared", "-delete", "pvc/small", manifests}},
		"halfway":              {Args: []string{"-trace", halfway}},
		"halfway-json-trace":   {Args: []string{"-trace", "-o", "json", halfway}},
		"pods":                 {Args: []string{"-trace", "testdata/pods.yaml"}},
		"pods-delete":          {Args: []string{"-delete", "pod/shop/cache", "-delete", "pod/shop/huge", "testdata/pods.yaml"}},
		"pods-odd":             {Args: []string{"testdata/pods-odd.yaml"}},
		"pods-odd-delete":      {Args: []string{"-delete", "pod/alone-a", "-delete", "pod/share-a", "-delete", "pod/share-b", "testdata/pods-odd.yaml"}},
		"ephemeral":            {Args: []string{"-trace", "testdata/ephemeral.yaml"}},
		"ephemeral-delete":     {Args: []string{"-trace", "-delete", "pod/cache", "testdata/ephemeral.yaml"}},
		"migrated":             {Args: []string{"testdata/migrated.yaml"}},
		"mounts":               {Args: []string{"testdata/mounts.yaml"}},
		"nothing":              {Args: []string{"-"}},
		"nothing-json":         {Args: []string{"-o", "json", "-"}},
		"help":                 {Args: []string{"-help"}},
		"bad-input":            {Args: []string{bad}, Code: dump.ExitInput},
		"bad-input-json":       {Args: []string{"-o", "json", manifests, bad}, Code: dump.ExitInput},
		"bad-file":             {Args: []string{manifests, "testdata/no-such-file.yaml"}, Code: dump.ExitInput},
		"bad-file-twice":       {Args: []string{dumped, dumped}, Code: dump.ExitInput},
		"bad-format":           {Args: []string{"-o", "wide", dumped}, Code: dump.ExitInput},
		"bad-flag":             {Args: []string{"-n", "shop", dumped}, Code: dump.ExitInput},
		"bad-delete":           {Args: []string{"-delete", "pvc", dumped}, Code: dump.ExitInput},
		"bad-delete-kind":      {Args: []string{"-delete", "node/one", dumped}, Code: dump.ExitInput},
		"bad-delete-absent":    {Args: []string{"-delete", "pvc/data-db-0", dumped}, Code: dump.ExitInput},
		"bad-delete-twice":     {Args: []string{"-delete", "pvc/shop/scratch", "-delete", "pvc/shop/scratch", dumped}, Code: dump.ExitInput},
		"bad-delete-no-file":   {Args: []string{"-delete", "pvc/a"}, Code: dump.ExitInput},
		"bad-resource-version": {Args: []string{"-"}, Stdin: strings.Replace(newClaim, `"new"`, `"new", "resourceVersion": "7"`, 1), Code: dump.ExitInput},
	})
}

// What -o json prints is complete: fed back as a running cluster it comes out as it went in, for all was
// settled (X8). Pods are not printed, so only clusters whose claims none is deleting are tried.
func TestRunSettlesWhatItPrints(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		for _, file := range []string{"dump", "manifests", "halfway"} {
			t.Run(file+" "+format, func(t *testing.T) {
				first := runWith("", "-o", format, "testdata/"+file+".yaml")
				require.Equal(t, dump.ExitOK, first.Code, first.Stderr)
				again := runWith(first.Stdout, "-o", format, "-")
				require.Equal(t, dump.ExitOK, again.Code, again.Stderr)
				assert.Equal(t, first.Stdout, again.Stdout)
			})
		}
	}
}

func TestRunPrintsOneListInJSON(t *testing.T) {
	got := runWith(newClaim, "-o", "json", "-trace", "testdata/dump.yaml", "-")
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	var list corev1.List
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
	assert.Equal(t, "v1 List", list.APIVersion+" "+list.Kind)
	kinds := map[string]int{}
	for _, item := range list.Items {
		var object struct {
			APIVersion, Kind       string
			Metadata, Spec, Status map[string]any
		}
		require.NoError(t, json.Unmarshal(item.Raw, &object))
		kinds[object.APIVersion+" "+object.Kind]++
		assert.NotEmpty(t, object.Metadata["uid"])
		assert.NotEmpty(t, object.Spec)
		assert.NotEmpty(t, object.Status["phase"])
	}
	assert.Equal(t, map[string]int{"v1 PersistentVolume": 4, "v1 PersistentVolumeClaim": 5}, kinds)
}

// What is in use stays: the claim while its pod runs (F2), the volume while it is bound (F3).
func TestRunKeepsWhatIsInUse(t *testing.T) {
	got := runWith("", "-o", "json", "-delete", "pvc/shop/data-db-0", "-delete", "pv/local-a", "testdata/dump.yaml")
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Status   struct{ Phase string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
	marked := map[string]string{}
	for _, item := range list.Items {
		if item.Metadata.DeletionTimestamp != "" {
			marked[item.Metadata.Name] = item.Status.Phase
		}
	}
	assert.Equal(t, map[string]string{"data-db-0": "Bound", "local-a": "Bound"}, marked)
}

// Objects with a uid, written by hand with nothing that an API server would add, are bound like others.
func TestRunFillsInWhatServersFillIn(t *testing.T) {
	volume, claim := handmadeVolume, handmadeClaim
	class := "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s, uid: u3}\nprovisioner: example.com/p\n"
	got := runWith(volume+"---"+strings.Replace(claim, "spec:", "spec:\n  storageClassName: s", 1)+"---\n"+class, "-o", "json", "-")
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	got = runWith(volume+"---"+claim+"---\n"+class, "-o", "json", "-")
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	assert.Equal(t, 2, strings.Count(got.Stdout, `"phase": "Bound"`))
	assert.Equal(t, 2, strings.Count(got.Stdout, `"volumeMode": "Filesystem"`))
}

func TestRunSaysThatThereAreNoNodes(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}\n"
	got := runWith(handmadeClaim+"---\n"+pod, "-")
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	assert.Contains(t, got.Stdout, "\nPods not placed:\npod/default/web: there are no nodes to place it on\n")
}

func TestRunTellsItsOwnFailuresFromBadInput(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, dump.ExitInternal, run(nil, strings.NewReader(""), programtest.BrokenWriter{}, &stderr))
	assert.Equal(t, "simulate: no space left\n", stderr.String())
}
