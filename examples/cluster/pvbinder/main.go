// Pvbinder binds the claims and volumes of a cluster, in place of kube-controller-manager's
// persistentvolume-binder-controller, which must be switched off:
//
//	kube-controller-manager --controllers='*,-persistentvolume-binder-controller' …
//	pvbinder --kubeconfig=$HOME/.kube/config
//
// It is package clientgo's Runner with what a program in production needs around it: flags, leader election, health,
// metrics and logs.
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
		fmt.Fprintf(stderr, "pvbinder: %v\nRun pvbinder --help for its flags.\n", err)
		return exitUsage
	}
	log := options.logger(stderr)
	if err := options.serve(ctx, log); err != nil {
		log.Error("pvbinder ends", "error", err)
		return exitFailed
	}
	log.Info("pvbinder ends")
	return exitOK
}
