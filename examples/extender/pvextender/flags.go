package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"
)

// options are what the flags say. Names are those of Kubernetes' own programs where they have the same.
type options struct {
	kubeconfig string
	master     string
	qps        float64
	burst      int

	listen          string
	certFile        string
	keyFile         string
	readTimeout     time.Duration
	bindTimeout     time.Duration
	shutdownTimeout time.Duration
	maxRequestBytes int64

	logFormat string
	verbosity int
}

const usage = `Usage: pvextender [flags]

Filters and scores nodes by a pod's volumes and binds both, in place of kube-scheduler's VolumeBinding plugin, which
must be switched off in the scheduler's configuration.

`

// parse reads the command line. Help is written to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pvextender", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.define(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.check()
}

func (o *options) define(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the `file` that says how to connect; without it and --master, the service account of the pod is used")
	flags.StringVar(&o.master, "master", "", "the `URL` of the API server, in place of the kubeconfig's")
	flags.Float64Var(&o.qps, "kube-api-qps", -1, "requests per second to the API server; negative leaves the limit to the server's priority and fairness")
	flags.IntVar(&o.burst, "kube-api-burst", 200, "requests that may be made at once, where --kube-api-qps is positive")

	flags.StringVar(&o.listen, "listen", "127.0.0.1:8888", "the `address` to serve at; whoever reaches it can have pods bound")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "the certificate `file` to serve HTTPS with; without it, HTTP")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "the key `file` of the certificate")
	flags.DurationVar(&o.readTimeout, "read-timeout", 30*time.Second, "how long a request may take to arrive")
	flags.DurationVar(&o.bindTimeout, "bind-timeout", 10*time.Minute, "how long a pod's claims may take to be bound; httpTimeout in the scheduler's configuration should be longer")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long answers that are under way may take after SIGTERM")
	flags.Int64Var(&o.maxRequestBytes, "max-request-bytes", 4<<20, "the size of the largest request that is read")

	flags.StringVar(&o.logFormat, "logging-format", "text", "text or json")
	flags.IntVar(&o.verbosity, "v", 0, "how much is logged, by the levels of Kubernetes")
}

// check finds what cannot be, before anything is begun.
func (o *options) check() error {
	for name, duration := range map[string]time.Duration{"--read-timeout": o.readTimeout, "--bind-timeout": o.bindTimeout, "--shutdown-timeout": o.shutdownTimeout} {
		if duration <= 0 {
			return fmt.Errorf("%s is %s, not positive", name, duration)
		}
	}
	switch {
	case o.qps == 0:
		return errors.New("--kube-api-qps is 0")
	case o.qps > 0 && o.burst < 1:
		return fmt.Errorf("--kube-api-burst is %d, less than 1", o.burst)
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file need each other")
	case o.maxRequestBytes < 1:
		return fmt.Errorf("--max-request-bytes is %d, less than 1", o.maxRequestBytes)
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--logging-format is neither text nor json: %q", o.logFormat)
	case o.verbosity < 0:
		return fmt.Errorf("--v is negative: %d", o.verbosity)
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return nil
}
