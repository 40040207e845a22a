package binding_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// source is the file with the mutant in it.
func (m mutant) source(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile(m.file)
	require.NoError(t, err, m.title)
	before, after := strings.TrimSuffix(m.before, "\n"), strings.TrimSuffix(m.after, "\n")
	require.Equal(t, 1, strings.Count(string(file), before), "%s: the text to replace must occur once in %s", m.title, m.file)
	return strings.Replace(string(file), before, after, 1)
}

// TestMutantsCanBeMade holds the list to the code as it is now; that each of them dies takes longer to see (TestMutants).
func TestMutantsCanBeMade(t *testing.T) {
	mutants, titles := readMutants(t), map[string]bool{}
	assert.GreaterOrEqual(t, len(mutants), 20)
	for _, m := range mutants {
		assert.False(t, titles[m.title], "%s is there twice", m.title)
		titles[m.title] = true
		assert.NotEqual(t, m.before, m.after, m.title)
		m.source(t)
	}
}
