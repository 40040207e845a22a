package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/pvbind/pvbind/examples/cluster/program"
)

// options are what the flags say. Names are those of Kubernetes' own programs where they have the same.
type options struct {
	program.Common

	listen          string
	certFile        string
	keyFile         string
	readTimeout     time.Duration
	bindTimeout     time.Duration
	shutdownTimeout time.Duration
	maxRequestBytes int64
}

const usage = `Usage: pvextender [flags]

Filters and scores nodes by a pod's volumes and binds both, in place of kube-scheduler's VolumeBinding plugin, which
must be switched off in the scheduler's configuration.

`

// Define defines the flags.
func (o *options) Define(flags *flag.FlagSet) {
	o.Common.Define(flags)

	flags.StringVar(&o.listen, "listen", "127.0.0.1:8888", "the `address` to serve at; whoever reaches it can have pods bound")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "the certificate `file` to serve HTTPS with; without it, HTTP")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "the key `file` of the certificate")
	flags.DurationVar(&o.readTimeout, "read-timeout", 30*time.Second, "how long a request may take to arrive")
	flags.DurationVar(&o.bindTimeout, "bind-timeout", 10*time.Minute, "how long a pod's claims may take to be bound; httpTimeout in the scheduler's configuration should be longer")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long answers that are under way may take after SIGTERM")
	flags.Int64Var(&o.maxRequestBytes, "max-request-bytes", 4<<20, "the size of the largest request that is read")

}

// Check finds what cannot be, before anything is begun.
func (o *options) Check() error {
	if err := o.Common.Check(); err != nil {
		return err
	}
	for name, duration := range map[string]time.Duration{"--read-timeout": o.readTimeout, "--bind-timeout": o.bindTimeout, "--shutdown-timeout": o.shutdownTimeout} {
		if duration <= 0 {
			return fmt.Errorf("%s is %s, not positive", name, duration)
		}
	}
	switch {
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file need each other")
	case o.maxRequestBytes < 1:
		return fmt.Errorf("--max-request-bytes is %d, less than 1", o.maxRequestBytes)
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return nil
}
