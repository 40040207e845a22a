// Explain says of a cluster why claims are Pending, what can be done with volumes that nobody uses, and how claims and
// volumes that came apart are brought together:
//
//	kubectl get sc,pv,pvc,pod,node,csinode,volumeattachment -A -o json | go run ./examples/explain
//	go run ./examples/explain -claim shop/data dump.json
//
// Built under the name kubectl-pvbind and put in the PATH it is a plugin, and called as kubectl pvbind. It only reads:
// it writes nothing to any cluster.
//
// cluster.go has the input, claims.go, volumes.go and pairs.go the three parts of the answer, operations.go what can be done
// with a volume; report.go and text.go print the answer, full.go that about one claim or one volume.
package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

func main() {
	env := environment{program: os.Args[0], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now}
	if isTerminal(os.Stderr) {
		env.progress = os.Stderr
	}
	os.Exit(env.run(os.Args[1:]))
}

// environment is everything outside the program.
type environment struct {
	program        string
	stdin          io.Reader
	stdout, stderr io.Writer
	progress       io.Writer // nil: nobody watches
	now            func() time.Time
}

// run runs the program and returns its exit code.
func (e environment) run(args []string) int {
	usage := usageOf(e.program)
	var out, notes bytes.Buffer
	err := e.explain(args, &out, &notes)
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(e.stdout, usage)
		return dump.ExitOK
	}
	io.Copy(e.stderr, &notes)
	if err == nil {
		_, err = io.Copy(e.stdout, &out)
	}
	if err != nil {
		return dump.Report(commandOf(e.program), usage, err, e.stderr)
	}
	return dump.ExitOK
}

func (e environment) explain(args []string, out, notes io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return &dump.UsageError{Err: err}
	}
	if err := e.checkInput(o); err != nil {
		return err
	}
	watched := newProgress(e.progress, e.now)
	in, err := dump.Read(o.files, e.stdin, watched.reading)
	dump.PrintNotes(notes, in.Notes)
	if err != nil {
		watched.end()
		return err
	}
	c := newCluster(in.Objects(), watched)
	dump.PrintNotes(notes, c.missing())
	defer watched.end()
	return c.write(o, out)
}

// checkInput returns an error where the program would wait for input for ever because the pipe was forgotten.
func (e environment) checkInput(o options) error {
	if file, ok := e.stdin.(*os.File); ok && len(o.files) == 1 && o.files[0] == "-" && isTerminal(file) {
		return &dump.UsageError{Err: errors.New("nothing is piped into standard input: pipe the output of kubectl get into it, or name a FILE")}
	}
	return nil
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
