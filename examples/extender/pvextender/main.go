// Pvextender answers kube-scheduler's questions about volumes, in place of its VolumeBinding plugin, which must be
// switched off in the scheduler's configuration:
//
//	pvextender --kubeconfig=$HOME/.kube/config --listen=127.0.0.1:8888
//	kube-scheduler --config=…    # as in the README
//
// It is package extender with what a program needs around it: flags, TLS, logs and an orderly end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // the command line is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run works until the context ends, and returns the exit code. Logs go to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	options, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "pvextender: %v\nRun pvextender --help for its flags.\n", err)
		return exitUsage
	}
	log := options.logger(stderr)
	if err := options.serve(ctx, log); err != nil {
		log.Error("pvextender ends", "error", err)
		return exitFailed
	}
	log.Info("pvextender ends")
	return exitOK
}
