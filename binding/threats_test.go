package binding_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryThreatNamesItsTest holds each line of the threats in RULES.md to the tests and scenarios that it names.
func TestEveryThreatNamesItsTest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("RULES.md")
	require.NoError(t, err)
	_, threats, found := strings.Cut(string(text), "\n## What it protects against, and what not\n")
	require.True(t, found)
	tests := testFunctions(t)
	var lines int
	for line := range strings.Lines(threats) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "| what they do" || cells[0] == "| what happens" {
			continue
		}
		lines++
		require.Len(t, cells, 3, line)
		for name := range strings.SplitSeq(strings.TrimSuffix(cells[2], " |"), ", ") {
			if story, isStory := strings.CutPrefix(name, "`"); isStory {
				assert.FileExists(t, "internal/scenario/testdata/"+strings.TrimSuffix(story, "`")+".txt", line)
			} else {
				assert.Contains(t, tests, name, line)
			}
		}
	}
	assert.Greater(t, lines, 15)
}

var testFunction = regexp.MustCompile(`^func (Test\w+)\(`)

// testFunctions returns the names of all tests of the repository, modules of their own included.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if found := testFunction.FindStringSubmatch(lines.Text()); found != nil {
				names[found[1]] = true
			}
		}
		return lines.Err()
	}))
	return names
}
