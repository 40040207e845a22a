package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

func runAs(program, stdin string, args ...string) programtest.Outcome {
	return programtest.Run(func(stdout, stderr io.Writer) int {
		env := environment{program: program, stdin: strings.NewReader(stdin), stdout: stdout, stderr: stderr, now: time.Now}
		return env.run(args)
	})
}

const clusterFile = "testdata/cluster.yaml"

func TestRun(t *testing.T) {
	run := func(stdin string, args ...string) programtest.Outcome { return runAs("explain", stdin, args...) }
	programtest.Calls(t, "explain", run, map[string]programtest.Call{
		"cluster":           {Args: []string{clusterFile}},
		"cluster-json":      {Args: []string{"-o", "json", clusterFile}},
		"claim":             {Args: []string{"-claim", "shop/data-1", clusterFile}},
		"claim-json":        {Args: []string{"-o=json", "-claim", "shop/huge", clusterFile}},
		"claim-scheduling":  {Args: []string{clusterFile, "-claim", "db/data-db-1"}},
		"claim-restored":    {Args: []string{"-claim", "web/restored", clusterFile}},
		"claim-mismatch":    {Args: []string{"-claim", "web/misfit", clusterFile}},
		"claim-bound":       {Args: []string{"-claim", "shop/orders", clusterFile}},
		"volume-released":   {Args: []string{"-volume", "old-2", clusterFile}},
		"volume-json":       {Args: []string{"-volume", "old-2", "-o", "json", clusterFile}},
		"volume-free":       {Args: []string{"-volume", "slow-2", clusterFile}},
		"volume-bound":      {Args: []string{"-volume", "healthy", clusterFile}},
		"volume-half":       {Args: []string{"-volume", "half", clusterFile}},
		"volume-restored":   {Args: []string{"-volume", "restored", clusterFile}},
		"other-cluster":     {Args: []string{"../simulate/testdata/dump.yaml"}},
		"manifests":         {Args: []string{"../simulate/testdata/manifests.yaml"}},
		"migrated":          {Args: []string{"../simulate/testdata/migrated.yaml"}},
		"disowned":          {Args: []string{"testdata/disowned.yaml"}},
		"disowned-claim":    {Args: []string{"-claim", "unmarked", "testdata/disowned.yaml"}},
		"contended":         {Args: []string{"testdata/contended.yaml"}},
		"contended-claim":   {Args: []string{"-claim", "shop/second", "testdata/contended.yaml"}},
		"contended-volume":  {Args: []string{"-volume", "both", "testdata/contended.yaml"}},
		"one-namespace":     {Args: []string{"testdata/namespace.yaml"}},
		"partial":           {Args: []string{"testdata/partial.yaml"}},
		"partial-bound":     {Args: []string{"-claim", "shop/bound", "testdata/partial.yaml"}},
		"partial-contended": {Args: []string{"-claim", "shop/first", "testdata/partial.yaml"}},
		"partial-deleted":   {Args: []string{"-claim", "shop/unwanted", "testdata/partial.yaml"}},
		"attached":          {Args: []string{"testdata/attached.yaml"}},
		"attached-json":     {Args: []string{"-o", "json", "-volume", "going", "testdata/attached.yaml"}},
		"nothing":           {},
		"nothing-json":      {Args: []string{"-o", "json", "-"}},
		"help":              {Args: []string{"-help"}},
		"bad-input":         {Args: []string{"../simulate/testdata/bad.yaml"}, Code: dump.ExitInput},
		"bad-file":          {Args: []string{"testdata/no-such-file.yaml"}, Code: dump.ExitInput},
		"bad-twice":         {Args: []string{clusterFile, clusterFile}, Code: dump.ExitInput},
		"bad-format":        {Args: []string{"-o", "yaml", clusterFile}, Code: dump.ExitInput},
		"bad-flag":          {Args: []string{"-n", "shop", clusterFile}, Code: dump.ExitInput},
		"bad-claim":         {Args: []string{"-claim", "shop/", clusterFile}, Code: dump.ExitInput},
		"bad-claim-absent":  {Args: []string{"-claim", "shop/nobody", clusterFile}, Code: dump.ExitInput},
		"bad-volume-absent": {Args: []string{"-volume", "nothing", clusterFile}, Code: dump.ExitInput},
		"bad-both":          {Args: []string{"-volume", "half", "-claim", "web/half", clusterFile}, Code: dump.ExitInput},
	})
}

// The order of the objects does not matter, nor whether they come as YAML or as JSON.
func TestRunInAnyOrder(t *testing.T) {
	in, err := dump.Read([]string{clusterFile}, nil, nil)
	require.NoError(t, err)
	objects := in.Objects()
	var text strings.Builder
	for i := range objects {
		object := objects[len(objects)-1-i]
		line, err := json.Marshal(object)
		require.NoError(t, err)
		text.Write(line)
	}
	want := runAs("explain", "", clusterFile)
	assert.Equal(t, want, runAs("explain", text.String(), "-"))
}

// What -o json says has the fields that are documented, and no others.
func TestRunPrintsTheDocumentedFields(t *testing.T) {
	got := runAs("explain", "", "-o", "json", clusterFile)
	require.Equal(t, dump.ExitOK, got.Code, got.Stderr)
	decoder := json.NewDecoder(strings.NewReader(got.Stdout))
	decoder.DisallowUnknownFields()
	type mismatch struct{ Reason, Requested, Actual string }
	type verdict struct {
		Volume, ClaimRef string
		Mismatches       []mismatch
		Chosen           bool
	}
	var read struct {
		Claims []struct {
			Claim, State, Rule, Message, Volume, Holder, Class, Provisioner, Node, Problem string
			Mismatches                                                                     []mismatch
			Pods, Finalizers, Alike                                                        []string
			Scheduling                                                                     []struct {
				Pod, Message, Volumes string
				Nodes                 []struct {
					Nodes []string
					Why   string
				}
			}
			Search *struct {
				Volumes, Fit int
				Chosen       string
				Counts       []struct {
					Reason, Largest string
					Volumes         int
				}
				Nearest *verdict
			}
		}
		Volumes []struct {
			Volume, Phase, ReclaimPolicy, Claim, Why string
			Finalizers, Alike                        []string
			Operations                               []struct {
				Operation, Does, Command string
				Warnings, Refused        []string
			}
		}
		Pairs []struct {
			Claim, Volume, Command, Problem string
			Violations                      []struct{ Violation, Expected, Actual string }
			Repair                          struct {
				By, Why, Risk string
				Step          *struct {
					Kind, Rule, On string
					Object         json.RawMessage
				}
			}
			Alike []struct{ Claim, Volume string }
		}
	}
	require.NoError(t, decoder.Decode(&read))
	assert.ErrorIs(t, decoder.Decode(&read), io.EOF, "one value")
	assert.Len(t, read.Claims, 15)
	assert.Equal(t, []string{"pvc/shop/data-1", "pvc/shop/data-2"}, read.Claims[2].Alike)
	assert.Equal(t, []string{"pv/old-2"}, read.Volumes[3].Alike)
	assert.Len(t, read.Pairs, 9)
}

// Built as a kubectl plugin it calls itself as people call it.
func TestRunAsAPlugin(t *testing.T) {
	for program, command := range map[string]string{
		"/usr/local/bin/kubectl-pvbind": "kubectl pvbind", "kubectl-pvbind.exe": "kubectl pvbind", "/tmp/go-build1/exe/explain": "explain",
	} {
		help := runAs(program, "", "-h")
		assert.Equal(t, dump.ExitOK, help.Code)
		assert.Contains(t, help.Stdout, "-o json | "+command+" [-o text|json]", program)
		wrong := runAs(program, "", "-x")
		assert.Equal(t, dump.ExitInput, wrong.Code)
		assert.Contains(t, wrong.Stderr, command+": flag provided but not defined: -x\nUsage: ", program)
	}
}

func TestRunTellsItsOwnFailuresFromBadInput(t *testing.T) {
	var stderr bytes.Buffer
	env := environment{program: "explain", stdin: strings.NewReader(""), stdout: programtest.BrokenWriter{}, stderr: &stderr, now: time.Now}
	assert.Equal(t, dump.ExitInternal, env.run(nil))
	assert.Contains(t, stderr.String(), "explain: no space left\n")
}

// Somebody who watches is told, after two seconds and not too often, and the line is wiped in the end.
func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var said bytes.Buffer
	p := newProgress(&said, func() time.Time { return now })
	for i := range 40 {
		now = now.Add(100 * time.Millisecond)
		p.tell("read", i, 40)
	}
	p.end()
	assert.NotContains(t, said.String(), "read 18 of 40", "it is early")
	assert.Equal(t, 11, strings.Count(said.String(), "read "))
	assert.True(t, strings.HasSuffix(said.String(), "read 39 of 40\r\x1b[K"), "%q", said.String())

	said.Reset()
	quick := newProgress(&said, time.Now)
	quick.tell("read", 1, 2)
	quick.end()
	assert.Empty(t, said.String())
	newProgress(nil, time.Now).end()
}
