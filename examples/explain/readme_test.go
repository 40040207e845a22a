package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The answer that the README shows is what the program prints of the cluster of the test data.
func TestAnswerInTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "\nWhy is it Pending?")
	require.True(t, found)
	var shown strings.Builder
	for line := range strings.Lines(strings.TrimLeft(after[strings.Index(after, "\n"):], "\n")) {
		code, isCode := strings.CutPrefix(line, "    ")
		if !isCode {
			break
		}
		shown.WriteString(code)
	}
	assert.Contains(t, shown.String(), "pvc/shop/huge")
	assert.Contains(t, runAs("explain", "", clusterFile).Stdout, "\n"+shown.String()+"\n")
}
