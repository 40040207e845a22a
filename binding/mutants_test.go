//go:build mutants

package binding_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMutants breaks the code in one way at a time, as testdata/mutants.txt says, and runs the scenarios on it and,
// if none of them notices, the tests of the rooms and the model. A mutant that survives is an invariant that nobody checks.
//
//	go test ./binding -tags mutants -run Mutants -v -timeout 90m
//
// PVBIND_MUTANT=text runs only those whose title contains the text.
func TestMutants(t *testing.T) {
	mutants, only := readMutants(t), os.Getenv("PVBIND_MUTANT")
	if only == "" {
		same := mutant{title: "no mutant", file: "../phase/claimref.go", before: "package phase\n", after: "package phase\n"}
		require.Empty(t, same.killer(t), "the code as it is passes")
	}
	killed, total := 0, 0
	for _, m := range mutants {
		if !strings.Contains(m.title, only) {
			continue
		}
		total++
		if by := m.killer(t); assert.NotEmpty(t, by, "%s survives", m.title) {
			killed++
			t.Logf("killed by %-50s %s", by, m.title)
		}
	}
	t.Logf("killed %d of %d mutants", killed, total)
	assert.True(t, total >= 20 || only != "" && total > 0, "there are fewer than 20, or none of that title")
}

// killer is the first test that fails on the mutant; "" if none does.
func (m mutant) killer(t *testing.T) string {
	dir, err := os.MkdirTemp("", "mutant") // not t's: all of them together would fill a disk
	require.NoError(t, err)
	defer func() { assert.NoError(t, os.RemoveAll(dir)) }()
	binaries := map[string]string{}
	for _, killer := range killers {
		if binaries[killer.room] == "" {
			binaries[killer.room] = m.build(t, dir, killer.room)
		}
		run := exec.Command(binaries[killer.room], append([]string{"-test.failfast", "-test.timeout", "20m", "-test.run"}, killer.run...)...)
		run.Dir, run.Env = killer.room, append(os.Environ(), "PVBIND_MODE="+killer.mode)
		output, err := run.CombinedOutput()
		failed := killer.failed.FindAllSubmatch(output, -1)
		switch {
		case err == nil:
			require.NotContains(t, string(output), "no tests to run", killer)
		case len(failed) > 0:
			return string(failed[len(failed)-1][1])
		case bytes.Contains(output, []byte("panic:")):
			return "a panic"
		}
	}
	return ""
}

// killers are the tests that may notice, the cheap ones first, each with its room. That the model of a mutant is a smaller one is no
// fault, and TestModel itself notices that: only its worlds count.
var killers = []struct {
	room   string
	run    []string
	mode   string
	failed *regexp.Regexp
}{
	{room: "internal/scenario", run: []string{"^TestScenario$"}, failed: anyTest},
	{room: "obj", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "../phase", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "decision", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "scheduling", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "internal/engine", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "../reclaim", run: []string{"", "-test.short"}, failed: anyTest},
	{room: ".", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "internal/history", run: []string{"", "-test.short"}, failed: anyTest},
	{room: "internal/engine/model", run: []string{"^TestModel$", "-test.short"}, failed: aWorld},
	{room: ".", run: []string{""}, failed: anyTest}, // short runs draw lots
	{room: "scheduling", run: []string{""}, failed: anyTest},
	{room: "internal/history", run: []string{""}, failed: anyTest},
	{room: "internal/history", run: []string{"^TestAdviceIsFollowed$"}, mode: "full", failed: anyTest},
	{room: "internal/engine/model", run: []string{"^TestModel$"}, mode: "full", failed: aWorld},
}

var (
	anyTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	aWorld  = regexp.MustCompile(`--- FAIL: (\S+/\S+)`)
)

// build compiles the tests of a room with the mutant in the place of the file, into a folder of its own in dir.
func (m mutant) build(t *testing.T, dir, room string) string {
	original, err := filepath.Abs(m.file)
	require.NoError(t, err)

	dir, err = os.MkdirTemp(dir, "room")
	require.NoError(t, err)
	mutated, overlay, binary := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "binding.test")
	require.NoError(t, os.WriteFile(mutated, []byte(m.source(t)), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	output, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+room).CombinedOutput()
	require.NoError(t, err, "%s does not compile: %s", m.title, output)
	return binary
}
