// Hostpath is a provisioner for a controller of one's own: it makes a directory for each claim, deletes it and
// scrubs it. All it needs is in dirs.go, three methods that are registered as hooks with a binding.Controller.
//
// Run, it tells the story of three volumes, on an API server in memory and with real directories:
//
//	go run ./examples/hostpath
//	go run ./examples/hostpath -root DIR
//
// It is for a cluster of one node, for it makes directories on the machine that it runs on. One for many nodes would
// do the same by way of the node that the volume's affinity names.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const (
	exitOK       = 0
	exitInternal = 1
	exitUsage    = 2 // the command line is wrong; nothing is on standard output
)

// run runs the program and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(stdout, usage)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "hostpath: %v\n%s", err, usage)
		return exitUsage
	}
	var out bytes.Buffer
	err = runIn(root, &out)
	if err == nil {
		_, err = io.Copy(stdout, &out)
	}
	if err != nil {
		fmt.Fprintf(stderr, "hostpath: %v\n", err)
		return exitInternal
	}
	return exitOK
}

// runIn tells the story in the root, or in a temporary one that is removed.
func runIn(root string, out io.Writer) (err error) {
	if root == "" {
		if root, err = os.MkdirTemp("", "hostpath-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	}
	return tell(context.Background(), directories{root}, out)
}
