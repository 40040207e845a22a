package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const usage = `Usage: hostpath [-root DIR]

Makes volumes in directories, and tells what becomes of them.

  -root DIR   an empty directory to make them in, where what is kept can be looked at afterwards;
              otherwise a temporary one is used, and removed
`

// parse reads the command line and returns the root as an absolute path; "" for a temporary one.
func parse(args []string) (root string, err error) {
	flags := flag.NewFlagSet("hostpath", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("root", "", func(value string) error {
		root, err = emptyDirectory(value)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return root, nil
}

// emptyDirectory returns the absolute path of a root, which must exist, for a missing one may be a disk that is not
// mounted, and be empty: UIDs on a server in memory begin anew with each run, so the directories of an earlier run would be
// taken for those of this one.
func emptyDirectory(name string) (string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", errors.New("the directory is not empty")
	}
	return filepath.Abs(name)
}
