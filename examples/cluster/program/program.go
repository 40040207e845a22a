// Package program is what a program that works on a cluster has around its work: flags, help, logs, a connection to the
// API server and an orderly end. Pvbinder and pvextender are made with it.
//
//	type options struct {
//		program.Common
//		workers int
//	}
//
//	func main() { program.Program{Name: "pvbinder", Usage: usage, Options: &options{}}.Main() }
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2 // the command line is wrong
)

// Program is a command that takes flags, and no arguments.
type Program struct {
	Name    string
	Usage   string // stands in the help, before the flags
	Options Options
}

// Options are what the flags say, and the work to be done by them. One that embeds Common has it define and check its
// flags too.
type Options interface {
	Define(*flag.FlagSet)
	Check() error // finds what cannot be, before anything is begun
	Logger(io.Writer) *slog.Logger
	Serve(context.Context, *slog.Logger) error // works until the context ends
}

// Main is the process: it works until it is told to end, and exits.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Run works until the context ends, and returns the exit code. Logs go to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := p.Parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return ExitOK
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\nRun %[1]s --help for its flags.\n", p.Name, err)
		return ExitUsage
	}
	log := p.Options.Logger(stderr)
	if err := p.Options.Serve(ctx, log); err != nil {
		log.Error(p.Name+" ends", "error", err)
		return ExitFailed
	}
	log.Info(p.Name + " ends")
	return ExitOK
}

// Parse reads the command line. Help is written to out, and is the error flag.ErrHelp.
func (p Program) Parse(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	p.Options.Define(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, p.Usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return p.Options.Check()
}
