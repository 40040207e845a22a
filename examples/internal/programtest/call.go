package programtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Call is a command line, and the exit code that it must lead to.
type Call struct {
	Args  []string
	Stdin string
	Code  int
}

// Calls holds the outcome of each call of the program to the file of that name in testdata/golden, where no other file
// may be. A call that fails must print nothing but why, and the same call again must end in the same way.
func Calls(t *testing.T, program string, run func(stdin string, args ...string) Outcome, calls map[string]Call) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			got := run(c.Stdin, c.Args...)
			require.Equal(t, c.Code, got.Code, got.Stderr)
			if c.Code != 0 {
				assert.Empty(t, got.Stdout)
				assert.NotEmpty(t, got.Stderr)
			}
			Golden(t, filepath.Join("testdata", "golden", name+".txt"),
				fmt.Sprintf("$ %s %s\n-- exit %d, standard output --\n%s-- standard error --\n%s",
					program, strings.Join(c.Args, " "), got.Code, got.Stdout, got.Stderr))
			assert.Equal(t, got, run(c.Stdin, c.Args...), "the same input gives the same output")
		})
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		assert.Contains(t, calls, strings.TrimSuffix(filepath.Base(file), ".txt"), "%s belongs to no call", file)
	}
}
