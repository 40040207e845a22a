package binding_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the rules mark as leaving upstream is a row of the table in the README, and the reverse.
func TestWhatDiffersIsInTheReadme(t *testing.T) {
	rules, err := os.ReadFile("RULES.md")
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)

	var marked, listed []string
	for _, rule := range regexp.MustCompile(`(?m)^- ([A-Z]\d+) .*\[differs`).FindAllStringSubmatch(string(rules), -1) {
		marked = append(marked, rule[1])
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:[A-Z]\d+ ?)+) \|`).FindAllStringSubmatch(string(readme), -1) {
		listed = append(listed, strings.Fields(row[1])...)
	}
	assert.NotEmpty(t, marked)
	assert.ElementsMatch(t, marked, listed)
}
