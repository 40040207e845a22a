package main

import (
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

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	return string(text)
}

// The example of the README is compiled and run as a package of its own, by way of an overlay, so that
// nothing is written to the module.
func TestTheExampleOfTheReadmeRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it links a program")
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	require.Len(t, blocks, 1)
	dir := t.TempDir()
	source, overlay, binary := filepath.Join(dir, "x_test.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "x.test")
	require.NoError(t, os.WriteFile(source, []byte(blocks[0][1]), 0o600))
	at, err := filepath.Abs("pasted/x_test.go")
	require.NoError(t, err)
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{at: source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))

	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./pasted").CombinedOutput()
	require.NoError(t, err, string(out))
	run := exec.Command(binary, "-test.v")
	run.Dir = dir
	out, err = run.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- PASS: ")

	formatted, err := exec.Command("gofmt", "-l", source).CombinedOutput()
	require.NoError(t, err)
	assert.Empty(t, string(formatted), "not formatted")
}

func TestTheReadmeIsShortAndNamesWhatExists(t *testing.T) {
	text := readme(t)
	assert.Less(t, strings.Count(text, "\n"), 120)
	assert.Contains(t, text, "go run ./examples/simulate")
	assert.Contains(t, text, "go test ./...")
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
		_, err := os.Stat(filepath.Join("../..", link[1])) // a file or a folder
		assert.NoError(t, err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` ").FindAllStringSubmatch(text, -1) {
		assert.DirExists(t, filepath.Join("../..", row[1]))
	}
}
