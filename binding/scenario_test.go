package binding_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateScenarios = flag.Bool("update", false, "rewrite the expected parts of testdata/scenarios")

const scenarioDir = "testdata/scenarios"

// TestScenario tells the stories in testdata/scenarios again and compares every write, read and event
// with what the files say. The README.md there explains how to read and write one. With -update the
// files are rewritten; the invariants are checked all the same.
func TestScenario(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), scenarioDir+"/"), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			script, err := parseScript(path, string(content))
			require.NoError(t, err)
			told, violations, err := tell(t.Context(), script)
			require.NoError(t, err)
			assert.Empty(t, violations)
			if *updateScenarios {
				require.NoError(t, os.WriteFile(path, []byte(told), 0o644))
				return
			}
			assert.Equal(t, string(content), told, "%s tells another story; if it is the right one, run: go test ./binding -run Scenario -update", path)
		})
	}
}

// scenarioFiles are the stories, in order.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(scenarioDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txt" {
			paths = append(paths, path)
		}
		return err
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 40, "stories in %s", scenarioDir)
	return paths
}
