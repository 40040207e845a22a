package main

import (
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

const usage = `Usage: simulate [-o table|yaml|json] [-delete KIND/[NAMESPACE/]NAME]... [-trace] [FILE...]

Runs the binding controller on the objects in the files and prints the volumes and claims that are left.
- is standard input. Without a file it runs a walkthrough. A pod that names claims and no node is placed on that
of the nodes in the files where its volumes fit best, once all else has settled; nothing but volumes is looked at.

  -o FORMAT      table (default), yaml or json
  -delete NAME   delete pv/NAME, pvc/[NAMESPACE/]NAME or pod/[NAMESPACE/]NAME once all else has settled;
                 may be repeated. What does not exist when its turn comes is an error.
  -trace         list every write and event in order: before the tables, or on standard error with yaml and json
`

type format string

const (
	formatTable format = "table"
	formatYAML  format = "yaml"
	formatJSON  format = "json"
)

// options are the command line.
type options struct {
	format  format
	deletes []target
	trace   bool
	files   []string
}

// parse reads the command line. Flags and files may come in any order.
func parse(args []string) (options, error) {
	o := options{format: formatTable}
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("o", "", o.setFormat)
	flags.Func("delete", "", o.addDelete)
	flags.BoolVar(&o.trace, "trace", false, "")
	files, err := dump.ParseArgs(flags, args)
	if err != nil {
		return o, err
	}
	o.files = files
	return o, o.check()
}

func (o *options) setFormat(value string) error {
	o.format = format(value)
	if !slices.Contains([]format{formatTable, formatYAML, formatJSON}, o.format) {
		return fmt.Errorf("must be table, yaml or json")
	}
	return nil
}

func (o *options) addDelete(value string) error {
	t, err := parseTarget(value)
	o.deletes = append(o.deletes, t)
	return err
}

func (o *options) check() error {
	if len(o.files) == 0 && len(o.deletes) > 0 {
		return fmt.Errorf("-delete needs a FILE")
	}
	return nil
}
