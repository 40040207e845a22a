package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

const usage = `Usage: simulate [-o table|yaml|json] [-delete KIND/[NAMESPACE/]NAME]... [-trace] [FILE...]

Runs the binding controller on the objects in the files and prints the volumes and claims that are left.
- is standard input. Without a file it runs a walkthrough. A pod that names claims and no node is placed on that
of the nodes in the files where its volumes fit best, once all else has settled; nothing but volumes is looked at.
It says which volumes of a placed pod may be mounted, and what the others wait for.

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

// options is the command line.
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

// target is an object to delete.
type target struct {
	kind            string // pv, pvc or pod
	namespace, name string
}

func (t target) String() string {
	if t.namespace == "" {
		return t.kind + "/" + t.name
	}
	return t.kind + "/" + t.namespace + "/" + t.name
}

// parseTarget reads KIND/[NAMESPACE/]NAME.
func parseTarget(text string) (target, error) {
	parts := strings.Split(text, "/")
	if slices.Contains(parts, "") || len(parts) < 2 || len(parts) > 3 {
		return target{}, fmt.Errorf("must be KIND/[NAMESPACE/]NAME")
	}
	t := target{kind: shortKind(parts[0]), name: parts[len(parts)-1]}
	switch {
	case t.kind == "":
		return target{}, fmt.Errorf("kind must be pv, pvc or pod")
	case t.kind == "pv" && len(parts) == 3:
		return target{}, fmt.Errorf("a pv has no namespace")
	case t.kind == "pv":
		return t, nil
	case len(parts) == 3:
		t.namespace = parts[1]
	default:
		t.namespace = dump.DefaultNamespace
	}
	return t, nil
}

// shortKind returns the short name of a kind, from every spelling that kubectl accepts; "" for other kinds.
func shortKind(name string) string {
	switch strings.ToLower(name) {
	case "pv", "persistentvolume", "persistentvolumes":
		return "pv"
	case "pvc", "persistentvolumeclaim", "persistentvolumeclaims":
		return "pvc"
	case "po", "pod", "pods":
		return "pod"
	}
	return ""
}

func (t target) key() obj.Key {
	switch t.kind {
	case "pv":
		return obj.VolumeKey(t.name)
	case "pvc":
		return obj.ClaimKey(t.namespace, t.name)
	}
	return bindingtest.PodKey(t.namespace, t.name)
}
