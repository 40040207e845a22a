package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file anew")

// outcome is what a run of the program leaves.
type outcome struct {
	code           int
	stdout, stderr string
}

func runWith(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestTheStory(t *testing.T) {
	const golden = "testdata/story.txt"
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	got := runWith()
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Empty(t, got.stderr)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.stdout), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err, "write it with -update")
	assert.Equal(t, string(want), got.stdout)
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, entries, "the temporary root is removed")
	assert.Equal(t, got, runWith("-root", t.TempDir()), "the root's name is not in it")
}

func TestTheStoryLeavesWhatIsKept(t *testing.T) {
	root := t.TempDir()
	require.Equal(t, exitOK, runWith("-root", root).code)
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
	assert.Equal(t, exitOK, got.code, got.stderr)
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
			assert.Equal(t, exitUsage, got.code)
			assert.Empty(t, got.stdout)
			assert.Contains(t, got.stderr, c.says)
			assert.Contains(t, got.stderr, "Usage: hostpath")
		})
	}
	assert.NoDirExists(t, missing)
	assert.DirExists(t, filepath.Join(full, "pvc-1"))
}

func TestHelp(t *testing.T) {
	assert.Equal(t, outcome{exitOK, usage, ""}, runWith("-help"))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOwnFailuresAreNotWrongUse(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, exitInternal, run(nil, brokenWriter{}, &stderr))
	assert.Equal(t, "hostpath: no space left\n", stderr.String())

	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	got := runWith()
	assert.Equal(t, exitInternal, got.code)
	assert.Contains(t, got.stderr, "no such file or directory")
}
