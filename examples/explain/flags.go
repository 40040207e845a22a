package main

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

const plugin = "kubectl-pvbind"

// commandOf is what people type to call the program.
func commandOf(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name == plugin {
		return "kubectl pvbind"
	}
	return name
}

func usageOf(program string) string {
	return strings.ReplaceAll(usage, "COMMAND", commandOf(program))
}

const usage = `Usage: kubectl get sc,pv,pvc,pod,node,csinode,volumeattachment -A -o json | COMMAND [-o text|json] [-claim NAMESPACE/NAME | -volume NAME] [FILE...]

Says why claims are not Bound, what can be done with volumes that are Released, Failed or stuck, and how pairs of a
claim and a volume that came apart can be repaired. It reads, and writes to no cluster. Without a FILE it reads standard
input, as - does.

  -o FORMAT               text (default) or json
  -claim NAMESPACE/NAME   one claim in full, with every reason against every volume
  -volume NAME            one volume in full, with what keeps it from the claims that wait
`

type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// options are the command line.
type options struct {
	format format
	claim  obj.Key // zero: all
	volume string  // "": all
	files  []string
}

// parse reads the command line. Flags and files may come in any order.
func parse(args []string) (options, error) {
	o := options{format: formatText}
	flags := flag.NewFlagSet("explain", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("o", "", o.setFormat)
	flags.Func("claim", "", o.setClaim)
	flags.Func("volume", "", o.setVolume)
	files, err := dump.ParseArgs(flags, args)
	if err != nil {
		return o, err
	}
	o.files = files
	return o.complete()
}

func (o *options) setFormat(value string) error {
	o.format = format(value)
	if !slices.Contains([]format{formatText, formatJSON}, o.format) {
		return fmt.Errorf("must be text or json")
	}
	return nil
}

// setClaim takes a name alone for one in the default namespace, as kubectl does.
func (o *options) setClaim(value string) error {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok {
		namespace, name = dump.DefaultNamespace, value
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("must be NAMESPACE/NAME")
	}
	o.claim = obj.ClaimKey(namespace, name)
	return nil
}

func (o *options) setVolume(value string) error {
	if value == "" || strings.Contains(value, "/") {
		return fmt.Errorf("must be NAME")
	}
	o.volume = value
	return nil
}

func (o options) complete() (options, error) {
	if o.claim != (obj.Key{}) && o.volume != "" {
		return o, fmt.Errorf("-claim and -volume exclude each other")
	}
	if len(o.files) == 0 {
		o.files = []string{"-"}
	}
	return o, nil
}
