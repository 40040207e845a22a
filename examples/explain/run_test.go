package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

var update = flag.Bool("update", false, "write the golden files anew")

// outcome is what a run of the program leaves.
type outcome struct {
	code           int
	stdout, stderr string
}

func runAs(program, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	env := environment{program: program, stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr, now: time.Now}
	code := env.run(args)
	return outcome{code, stdout.String(), stderr.String()}
}

const cluster = "testdata/cluster.yaml"

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		stdin string
		code  int
	}{
		"cluster":           {args: []string{cluster}},
		"cluster-json":      {args: []string{"-o", "json", cluster}},
		"claim":             {args: []string{"-claim", "shop/data-1", cluster}},
		"claim-json":        {args: []string{"-o=json", "-claim", "shop/huge", cluster}},
		"claim-scheduling":  {args: []string{cluster, "-claim", "db/data-db-1"}},
		"claim-restored":    {args: []string{"-claim", "web/restored", cluster}},
		"claim-mismatch":    {args: []string{"-claim", "web/misfit", cluster}},
		"claim-bound":       {args: []string{"-claim", "shop/orders", cluster}},
		"volume-released":   {args: []string{"-volume", "old-2", cluster}},
		"volume-json":       {args: []string{"-volume", "old-2", "-o", "json", cluster}},
		"volume-free":       {args: []string{"-volume", "slow-2", cluster}},
		"volume-bound":      {args: []string{"-volume", "healthy", cluster}},
		"volume-half":       {args: []string{"-volume", "half", cluster}},
		"volume-restored":   {args: []string{"-volume", "restored", cluster}},
		"other-cluster":     {args: []string{"../simulate/testdata/dump.yaml"}},
		"manifests":         {args: []string{"../simulate/testdata/manifests.yaml"}},
		"disowned":          {args: []string{"testdata/disowned.yaml"}},
		"disowned-claim":    {args: []string{"-claim", "unmarked", "testdata/disowned.yaml"}},
		"one-namespace":     {args: []string{"testdata/namespace.yaml"}},
		"nothing":           {},
		"nothing-json":      {args: []string{"-o", "json", "-"}},
		"help":              {args: []string{"-help"}},
		"bad-input":         {args: []string{"../simulate/testdata/bad.yaml"}, code: dump.ExitInput},
		"bad-file":          {args: []string{"testdata/no-such-file.yaml"}, code: dump.ExitInput},
		"bad-twice":         {args: []string{cluster, cluster}, code: dump.ExitInput},
		"bad-format":        {args: []string{"-o", "yaml", cluster}, code: dump.ExitInput},
		"bad-flag":          {args: []string{"-n", "shop", cluster}, code: dump.ExitInput},
		"bad-claim":         {args: []string{"-claim", "shop/", cluster}, code: dump.ExitInput},
		"bad-claim-absent":  {args: []string{"-claim", "shop/nobody", cluster}, code: dump.ExitInput},
		"bad-volume-absent": {args: []string{"-volume", "nothing", cluster}, code: dump.ExitInput},
		"bad-both":          {args: []string{"-volume", "half", "-claim", "web/half", cluster}, code: dump.ExitInput},
	} {
		t.Run(name, func(t *testing.T) {
			got := runAs("explain", c.stdin, c.args...)
			require.Equal(t, c.code, got.code, got.stderr)
			if c.code != dump.ExitOK {
				assert.Empty(t, got.stdout)
				assert.NotEmpty(t, got.stderr)
			}
			checkGolden(t, name, fmt.Sprintf("$ explain %s\n-- exit %d, standard output --\n%s-- standard error --\n%s",
				strings.Join(c.args, " "), got.code, got.stdout, got.stderr))
			assert.Equal(t, got, runAs("explain", c.stdin, c.args...), "the same input gives the same output")
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

// The order of the objects does not matter, nor whether they come as YAML or as JSON.
func TestRunInAnyOrder(t *testing.T) {
	in, err := dump.Read([]string{cluster}, nil, nil)
	require.NoError(t, err)
	objects := in.Objects()
	var text strings.Builder
	for i := range objects {
		object := objects[len(objects)-1-i]
		line, err := json.Marshal(object)
		require.NoError(t, err)
		text.Write(line)
	}
	want := runAs("explain", "", cluster)
	assert.Equal(t, want, runAs("explain", text.String(), "-"))
}

// What -o json says has the fields that are documented, and no others.
func TestRunPrintsTheDocumentedFields(t *testing.T) {
	got := runAs("explain", "", "-o", "json", cluster)
	require.Equal(t, dump.ExitOK, got.code, got.stderr)
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	decoder.DisallowUnknownFields()
	type mismatch struct{ Reason, Asks, Has string }
	type verdict struct {
		Volume, Link string
		Mismatches   []mismatch
		Chosen       bool
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
			Can                                      []struct {
				Verb, Does, Command string
				Risks, Refused      []string
			}
		}
		Pairs []struct {
			Claim, Volume, Command, Problem string
			Violations                      []struct{ Violation, Wants, Has string }
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
	assert.Len(t, read.Pairs, 8)
}

// Built as a kubectl plugin it calls itself as people call it.
func TestRunAsAPlugin(t *testing.T) {
	for program, command := range map[string]string{
		"/usr/local/bin/kubectl-pvbind": "kubectl pvbind", "kubectl-pvbind.exe": "kubectl pvbind", "/tmp/go-build1/exe/explain": "explain",
	} {
		help := runAs(program, "", "-h")
		assert.Equal(t, dump.ExitOK, help.code)
		assert.Contains(t, help.stdout, "-o yaml | "+command+" [-o text|json]", program)
		wrong := runAs(program, "", "-x")
		assert.Equal(t, dump.ExitInput, wrong.code)
		assert.Contains(t, wrong.stderr, command+": flag provided but not defined: -x\nUsage: ", program)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRunTellsItsOwnFailuresFromBadInput(t *testing.T) {
	var stderr bytes.Buffer
	env := environment{program: "explain", stdin: strings.NewReader(""), stdout: brokenWriter{}, stderr: &stderr, now: time.Now}
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
