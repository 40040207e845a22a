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
// if none of them notices, the model. A mutant that survives is an invariant that nobody checks.
//
//	go test ./binding -tags mutants -run Mutants -v -timeout 60m
//
// PVBIND_MUTANT=text runs only those whose title contains the text.
func TestMutants(t *testing.T) {
	mutants, only := readMutants(t), os.Getenv("PVBIND_MUTANT")
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
	assert.True(t, total >= 20 || only != "", "there are fewer than 20")
}

// mutant is a change of the code that makes it wrong.
type mutant struct {
	title, file   string
	before, after string
}

// readMutants reads the list. A title begins with "# ", then come the file and what to replace by what:
//
//	# the title, which says what is wrong
//	file ../phase/link.go
//	- the text as it is; it occurs once in the file
//	+ the text in its place; both may have several lines
func readMutants(t *testing.T) []mutant {
	list, err := os.ReadFile("testdata/mutants.txt")
	require.NoError(t, err)
	var mutants []mutant
	for _, part := range strings.Split("\n"+string(list), "\n# ")[1:] {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		m := mutant{title: lines[0]}
		for _, line := range lines[1:] {
			kind, text, _ := strings.Cut(line, " ")
			switch kind {
			case "file":
				m.file = text
			case "-":
				m.before += text + "\n"
			case "+":
				m.after += text + "\n"
			default:
				require.Fail(t, "cannot read the list of mutants", "%s: %q", m.title, line)
			}
		}
		mutants = append(mutants, m)
	}
	return mutants
}

// killer is the first test that fails on the mutant; "" if none does.
func (m mutant) killer(t *testing.T) string {
	binary := m.build(t)
	for _, killer := range killers {
		run := exec.Command(binary, append([]string{"-test.failfast", "-test.timeout", "10m"}, killer...)...)
		output, err := run.CombinedOutput()
		if err == nil {
			require.NotContains(t, string(output), "no tests to run", killer)
			continue
		}
		if failed := failedTest.FindAllSubmatch(output, -1); len(failed) > 0 {
			return string(failed[len(failed)-1][1])
		}
		return strings.Join(killer, " ") + ": " + string(bytes.SplitN(output, []byte("\n"), 2)[0])
	}
	return ""
}

// killers are the tests that may notice, the cheap ones first.
var killers = [][]string{
	{"-test.run", "^TestScenario$"},
	{"-test.run", "^TestModel$", "-test.short"},
	{"-test.run", "^TestModel$"},
}

var failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)

// build compiles the tests with the mutant in the place of the file.
func (m mutant) build(t *testing.T) string {
	source, err := os.ReadFile(m.file)
	require.NoError(t, err, m.title)
	before, after := strings.TrimSuffix(m.before, "\n"), strings.TrimSuffix(m.after, "\n")
	require.Equal(t, 1, strings.Count(string(source), before), "%s: the text to replace must occur once in %s", m.title, m.file)
	original, err := filepath.Abs(m.file)
	require.NoError(t, err)

	dir := t.TempDir()
	mutated, overlay, binary := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "binding.test")
	require.NoError(t, os.WriteFile(mutated, []byte(strings.Replace(string(source), before, after, 1)), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	output, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s does not compile: %s", m.title, output)
	return binary
}
