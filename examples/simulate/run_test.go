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
)

var update = flag.Bool("update", false, "write the golden files anew")

const newClaim = `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "new", "namespace": "shop"},
 "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
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
	const dump, manifests, halfway, bad = "testdata/dump.yaml", "testdata/manifests.yaml", "testdata/halfway.yaml", "testdata/bad.yaml"
	for name, c := range map[string]struct {
		args  []string
		stdin string
		code  int
	}{
		"walkthrough":            {},
		"walkthrough-json-trace": {args: []string{"-o", "json", "-trace"}},
		"dump":                   {args: []string{dump}},
		"dump-json":              {args: []string{"-o", "json", dump}},
		"dump-yaml":              {args: []string{"-o=yaml", dump}},
		"dump-deletes": {args: []string{"-trace", "-delete", "pvc/shop/data-db-0", "-delete", "pod/shop/db-0",
			"-delete", "pv/local-a", "-delete", "pod/monitoring/prometheus-0", "-delete", "persistentvolumeclaims/monitoring/tsdb", dump}},
		"dump-in-use":          {args: []string{"-delete", "pvc/shop/data-db-0", "-delete", "pv/local-a", dump}},
		"dump-and-new-claim":   {args: []string{dump, "-", "-trace"}, stdin: newClaim},
		"manifests":            {args: []string{manifests, "-trace"}},
		"manifests-delete":     {args: []string{"-delete", "pod/team/app", "-delete", "pvc/team/shared", "-delete", "pvc/small", manifests}},
		"halfway":              {args: []string{"-trace", halfway}},
		"halfway-json-trace":   {args: []string{"-trace", "-o", "json", halfway}},
		"nothing":              {args: []string{"-"}},
		"nothing-json":         {args: []string{"-o", "json", "-"}},
		"help":                 {args: []string{"-help"}},
		"bad-input":            {args: []string{bad}, code: exitInput},
		"bad-input-json":       {args: []string{"-o", "json", manifests, bad}, code: exitInput},
		"bad-file":             {args: []string{manifests, "testdata/no-such-file.yaml"}, code: exitInput},
		"bad-file-twice":       {args: []string{dump, dump}, code: exitInput},
		"bad-format":           {args: []string{"-o", "wide", dump}, code: exitInput},
		"bad-flag":             {args: []string{"-n", "shop", dump}, code: exitInput},
		"bad-delete":           {args: []string{"-delete", "pvc", dump}, code: exitInput},
		"bad-delete-kind":      {args: []string{"-delete", "node/one", dump}, code: exitInput},
		"bad-delete-absent":    {args: []string{"-delete", "pvc/data-db-0", dump}, code: exitInput},
		"bad-delete-twice":     {args: []string{"-delete", "pvc/shop/scratch", "-delete", "pvc/shop/scratch", dump}, code: exitInput},
		"bad-delete-no-file":   {args: []string{"-delete", "pvc/a"}, code: exitInput},
		"bad-resource-version": {args: []string{"-"}, stdin: strings.Replace(newClaim, `"new"`, `"new", "resourceVersion": "7"`, 1), code: exitInput},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(c.stdin, c.args...)
			require.Equal(t, c.code, got.code, got.stderr)
			if c.code != exitOK {
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
				require.Equal(t, exitOK, first.code, first.stderr)
				again := runWith(first.stdout, "-o", format, "-")
				require.Equal(t, exitOK, again.code, again.stderr)
				assert.Equal(t, first.stdout, again.stdout)
			})
		}
	}
}

func TestRunPrintsOneListInJSON(t *testing.T) {
	got := runWith(newClaim, "-o", "json", "-trace", "testdata/dump.yaml", "-")
	require.Equal(t, exitOK, got.code, got.stderr)
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
	require.Equal(t, exitOK, got.code, got.stderr)
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
	volume := strings.Replace(goodVolume, "name: a", "name: a, uid: u1", 1)
	claim := strings.Replace(goodClaim, "name: data", "name: data, uid: u2", 1)
	class := "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s, uid: u3}\nprovisioner: example.com/p\n"
	got := runWith(volume+"---"+strings.Replace(claim, "spec:", "spec:\n  storageClassName: s", 1)+"---\n"+class, "-o", "json", "-")
	require.Equal(t, exitOK, got.code, got.stderr)
	got = runWith(volume+"---"+claim+"---\n"+class, "-o", "json", "-")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Equal(t, 2, strings.Count(got.stdout, `"phase": "Bound"`))
	assert.Equal(t, 2, strings.Count(got.stdout, `"volumeMode": "Filesystem"`))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRunTellsItsOwnFailuresFromBadInput(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, exitInternal, run(nil, strings.NewReader(""), brokenWriter{}, &stderr))
	assert.Equal(t, "simulate: no space left\n", stderr.String())
}
