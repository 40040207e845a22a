package dump

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The exit codes of a program that reads dumps.
const (
	ExitOK       = 0
	ExitInternal = 1
	ExitInput    = 2 // the command line or the input is wrong; nothing is on standard output
)

// ParseArgs reads flags and files in any order, and returns the files. Behind -- everything is a file.
func ParseArgs(flags *flag.FlagSet, args []string) (files []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return files, err
		}
		rest := flags.Args()
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(files, rest...), nil
		}
		if len(rest) == 0 {
			return files, nil
		}
		files, args = append(files, rest[0]), rest[1:]
	}
}

// Report prints an error, a line for each thing that is wrong, and after a mistake on the command line the first line
// of the usage. It returns the exit code that tells the kind of the error.
func Report(program, usage string, err error, stderr io.Writer) int {
	for _, line := range Lines(err) {
		fmt.Fprintln(stderr, program+": "+line)
	}
	var wrongUse *UsageError
	var wrongInput *Problem
	switch {
	case errors.As(err, &wrongUse):
		usageLine, _, _ := strings.Cut(usage, "\n")
		fmt.Fprintln(stderr, usageLine)
	case !errors.As(err, &wrongInput):
		return ExitInternal
	}
	return ExitInput
}

// PrintNotes prints what was passed over.
func PrintNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(w, "note: "+note)
	}
}
