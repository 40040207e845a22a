// Package programtest holds programs to what people see of them: what they print, and the exit code.
package programtest

import (
	"bytes"
	"errors"
	"io"
)

// Outcome is what a run of a program leaves.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Run runs a program that returns its exit code.
func Run(program func(stdout, stderr io.Writer) int) Outcome {
	var stdout, stderr bytes.Buffer
	code := program(&stdout, &stderr)
	return Outcome{code, stdout.String(), stderr.String()}
}

// BrokenWriter is an output that takes nothing.
type BrokenWriter struct{}

func (BrokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }
