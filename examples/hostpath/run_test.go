package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/internal/programtest"
)

func runWith(args ...string) programtest.Outcome {
	return programtest.Run(func(stdout, stderr io.Writer) int { return run(args, stdout, stderr) })
}

func TestTheStory(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	got := runWith()
	require.Equal(t, exitOK, got.Code, got.Stderr)
	require.Empty(t, got.Stderr)
	programtest.Golden(t, "testdata/story.txt", got.Stdout)
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, entries, "the temporary root is removed")
	assert.Equal(t, got, runWith("-root", t.TempDir()), "the root's name is not in it")
}

func TestTheStoryLeavesWhatIsKept(t *testing.T) {
	root := t.TempDir()
	require.Equal(t, exitOK, runWith("-root", root).Code)
	left, err := filepath.Glob(filepath.Join(root, "*", "*"))
	require.NoError(t, err)
	require.Len(t, left, 1, "the Retain volume's file, and none of the others'")
	data, err := os.ReadFile(left[0])
	require.NoError(t, err)
	assert.Equal(t, "post", string(data))
}

func TestTheRootMayBeRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("volumes", 0o700))
	got := runWith("-root", "volumes")
	assert.Equal(t, exitOK, got.Code, got.Stderr)
}

func TestWrongUse(t *testing.T) {
	full, missing, file := t.TempDir(), filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.Mkdir(filepath.Join(full, "pvc-1"), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":   {[]string{"-dir", "x"}, "not defined: -dir"},
		"an argument":       {[]string{"x"}, `unexpected argument "x"`},
		"a root left out":   {[]string{"-root"}, "needs an argument: -root"},
		"an empty root":     {[]string{"-root", ""}, "-root"},
		"a root in use":     {[]string{"-root", full}, "the directory is not empty"},
		"no such root":      {[]string{"-root", missing}, missing + ": no such file or directory"},
		"a root of a file":  {[]string{"-root", file}, file},
		"an argument after": {[]string{"-root", t.TempDir(), "x"}, `unexpected argument "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(c.args...)
			assert.Equal(t, exitUsage, got.Code)
			assert.Empty(t, got.Stdout)
			assert.Contains(t, got.Stderr, c.says)
			assert.Contains(t, got.Stderr, "Usage: hostpath")
		})
	}
	assert.NoDirExists(t, missing)
	assert.DirExists(t, filepath.Join(full, "pvc-1"))
}

func TestHelp(t *testing.T) {
	assert.Equal(t, programtest.Outcome{Code: exitOK, Stdout: usage}, runWith("-help"))
}

func TestOwnFailuresAreNotWrongUse(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, exitInternal, run(nil, programtest.BrokenWriter{}, &stderr))
	assert.Equal(t, "hostpath: no space left\n", stderr.String())

	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	got := runWith()
	assert.Equal(t, exitInternal, got.Code)
	assert.Contains(t, got.Stderr, "no such file or directory")
}
