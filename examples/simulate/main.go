// Simulate runs the binding controller on the PersistentVolumes and PersistentVolumeClaims in files, with
// an API server in memory, and prints what becomes of them:
//
//	kubectl get sc,pv,pvc,pod,node,csinode -A -o json > dump.json
//	go run ./examples/simulate dump.json
//	go run ./examples/simulate -delete pvc/data -trace dump.json new-claim.yaml
//
// Without a file it runs a walkthrough of a volume's life.
//
// play.go does what the input and the command line say, schedule.go places pods, and result.go and output.go show what is
// left.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the program and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var out, notes bytes.Buffer
	err := simulate(args, stdin, &out, &notes)
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(stdout, usage)
		return dump.ExitOK
	}
	io.Copy(stderr, &notes)
	if err != nil {
		return dump.Report("simulate", usage, err, stderr)
	}
	if _, err := io.Copy(stdout, &out); err != nil {
		return dump.Report("simulate", usage, err, stderr)
	}
	return dump.ExitOK
}

func simulate(args []string, stdin io.Reader, out, notes io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return &dump.UsageError{Err: err}
	}
	ctx := context.Background()
	if len(o.files) == 0 {
		return walk(ctx, o, out, notes)
	}
	in, err := dump.Read(o.files, stdin, nil)
	dump.PrintNotes(notes, in.Notes)
	if err != nil {
		return err
	}
	s, err := play(ctx, in.Entries, o.deletes)
	if err != nil {
		return err
	}
	if o.trace {
		writeTrace(o, s, out, notes)
	}
	return s.write(ctx, o, out, notes)
}

// writeTrace prints the trace: before the tables, or among the notes, where it does not mix with a List.
func writeTrace(o options, s *simulation, out, notes io.Writer) {
	if o.format != formatTable {
		out = notes
	}
	for _, line := range s.trace(0) {
		fmt.Fprintln(out, line)
	}
	if o.format == formatTable {
		fmt.Fprintln(out)
	}
}

// write prints what is left, in the format that the options name.
func (s *simulation) write(ctx context.Context, o options, out, notes io.Writer) error {
	dump.PrintNotes(notes, s.notes)
	r, err := s.result(ctx)
	if err != nil {
		return err
	}
	if o.format == formatTable {
		r.writeTables(out)
		return nil
	}
	return encode(out, r.list(), o.format)
}
