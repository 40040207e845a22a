package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

var update = flag.Bool("update", false, "write the golden files anew")

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

// outcome is what a run of the program leaves.
type outcome struct {
	code           int
	stdout, stderr string
}

func runWith(stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestRun(t *testing.T) {
	const dumped, manifests, halfway, bad = "testdata/dump.yaml", "testdata/manifests.yaml", "testdata/halfway.yaml", "testdata/bad.yaml"
	for name, c := range map[string]struct {
		args  []string
		stdin string
		code  int
	}{
		"walkthrough":            {},
		"walkthrough-json-trace": {args: []string{"-o", "json", "-trace"}},
		"dump":                   {args: []string{dumped}},
		"dump-json":              {args: []string{"-o", "json", dumped}},
		"dump-yaml":              {args: []string{"-o=yaml", dumped}},
		"dump-deletes": {args: []string{"-trace", "-delete", "pvc/shop/data-db-0", "-delete", "pod/shop/db-0",
			"-delete", "pv/local-a", "-delete", "pod/monitoring/prometheus-0", "-delete", "persistentvolumeclaims/monitoring/tsdb", dumped}},
		"dump-in-use":          {args: []string{"-delete", "pvc/shop/data-db-0", "-delete", "pv/local-a", dumped}},
		"dump-and-new-claim":   {args: []string{dumped, "-", "-trace"}, stdin: newClaim},
		"manifests":            {args: []string{manifests, "-trace"}},
		"manifests-delete":     {args: []string{"-delete", "pod/team/app", "-delete", "pvc/team/shared", "-delete", "pvc/small", manifests}},
		"halfway":              {args: []string{"-trace", halfway}},
		"halfway-json-trace":   {args: []string{"-trace", "-o", "json", halfway}},
		"pods":                 {args: []string{"-trace", "testdata/pods.yaml"}},
		"pods-delete":          {args: []string{"-delete", "pod/shop/cache", "-delete", "pod/shop/huge", "testdata/pods.yaml"}},
		"nothing":              {args: []string{"-"}},
		"nothing-json":         {args: []string{"-o", "json", "-"}},
		"help":                 {args: []string{"-help"}},
		"bad-input":            {args: []string{bad}, code: dump.ExitInput},
		"bad-input-json":       {args: []string{"-o", "json", manifests, bad}, code: dump.ExitInput},
		"bad-file":             {args: []string{manifests, "testdata/no-such-file.yaml"}, code: dump.ExitInput},
		"bad-file-twice":       {args: []string{dumped, dumped}, code: dump.ExitInput},
		"bad-format":           {args: []string{"-o", "wide", dumped}, code: dump.ExitInput},
		"bad-flag":             {args: []string{"-n", "shop", dumped}, code: dump.ExitInput},
		"bad-delete":           {args: []string{"-delete", "pvc", dumped}, code: dump.ExitInput},
		"bad-delete-kind":      {args: []string{"-delete", "node/one", dumped}, code: dump.ExitInput},
		"bad-delete-absent":    {args: []string{"-delete", "pvc/data-db-0", dumped}, code: dump.ExitInput},
		"bad-delete-twice":     {args: []string{"-delete", "pvc/shop/scratch", "-delete", "pvc/shop/scratch", dumped}, code: dump.ExitInput},
		"bad-delete-no-file":   {args: []string{"-delete", "pvc/a"}, code: dump.ExitInput},
		"bad-resource-version": {args: []string{"-"}, stdin: strings.Replace(newClaim, `"new"`, `"new", "resourceVersion": "7"`, 1), code: dump.ExitInput},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(c.stdin, c.args...)
			require.Equal(t, c.code, got.code, got.stderr)
			if c.code != dump.ExitOK {
				assert.Empty(t, got.stdout)
				assert.NotEmpty(t, got.stderr)
			}
			checkGolden(t, name, fmt.Sprintf("$ simulate %s\n-- exit %d, standard output --\n%s-- standard error --\n%s",
				strings.Join(c.args, " "), got.code, got.stdout, got.stderr))
			assert.Equal(t, got, runWith(c.stdin, c.args...), "the same input gives the same output")
		})
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "write it with -update")
	assert.Equal(t, string(want), got)
}

func TestEveryGoldenFileIsUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	require.NoError(t, err)
	source, err := os.ReadFile("run_test.go")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		assert.Contains(t, string(source), `"`+name+`"`, "%s belongs to no test", file)
	}
}

// What -o json prints is complete: fed back as a running cluster it comes out as it went in, for all was
// settled (X8). Pods are not printed, so only clusters whose claims none is deleting are tried.
func TestRunSettlesWhatItPrints(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		for _, file := range []string{"dump", "manifests", "halfway"} {
			t.Run(file+" "+format, func(t *testing.T) {
				first := runWith("", "-o", format, "testdata/"+file+".yaml")
				require.Equal(t, dump.ExitOK, first.code, first.stderr)
				again := runWith(first.stdout, "-o", format, "-")
				require.Equal(t, dump.ExitOK, again.code, again.stderr)
				assert.Equal(t, first.stdout, again.stdout)
			})
		}
	}
}

func TestRunPrintsOneListInJSON(t *testing.T) {
	got := runWith(newClaim, "-o", "json", "-trace", "testdata/dump.yaml", "-")
	require.Equal(t, dump.ExitOK, got.code, got.stderr)
	var list corev1.List
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
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
	require.Equal(t, dump.ExitOK, got.code, got.stderr)
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Status   struct{ Phase string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
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
	require.Equal(t, dump.ExitOK, got.code, got.stderr)
	got = runWith(volume+"---"+claim+"---\n"+class, "-o", "json", "-")
	require.Equal(t, dump.ExitOK, got.code, got.stderr)
	assert.Equal(t, 2, strings.Count(got.stdout, `"phase": "Bound"`))
	assert.Equal(t, 2, strings.Count(got.stdout, `"volumeMode": "Filesystem"`))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRunTellsItsOwnFailuresFromBadInput(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, dump.ExitInternal, run(nil, strings.NewReader(""), brokenWriter{}, &stderr))
	assert.Equal(t, "simulate: no space left\n", stderr.String())
}
