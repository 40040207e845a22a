package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"
)

// options are what the flags say. Names and defaults are kube-controller-manager's where it has the same.
type options struct {
	kubeconfig  string
	master      string
	qps         float64
	burst       int
	contentType string

	workers    int
	resync     time.Duration
	protection bool
	watchPods  bool

	elect    bool
	election election

	address   string
	logFormat string
	verbosity int
}

const usage = `Usage: pvbinder [flags]

Binds claims and volumes in place of kube-controller-manager's persistentvolume-binder-controller, which must be
switched off: kube-controller-manager --controllers='*,-persistentvolume-binder-controller'

`

// parse reads the command line. Help is written to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pvbinder", flag.ContinueOnError)
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
	flags.StringVar(&o.contentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf", "the `type` that requests are sent in")

	flags.IntVar(&o.workers, "workers", 64, "claims and volumes that are worked on at once")
	flags.DurationVar(&o.resync, "resync", 10*time.Minute, "how often everything is looked at though nothing has changed; 0 is never")
	flags.BoolVar(&o.protection, "protection", false, "do also what persistentvolumeclaim-protection-controller and persistentvolume-protection-controller do, which must then be switched off too")
	flags.BoolVar(&o.watchPods, "watch-pods", true, "watch pods, so that claims say which pods they wait for; --protection needs it")

	flags.BoolVar(&o.elect, "leader-elect", true, "work only while holding the lease, so that others may stand by")
	flags.StringVar(&o.election.namespace, "leader-elect-resource-namespace", "kube-system", "the namespace of the lease")
	flags.StringVar(&o.election.name, "leader-elect-resource-name", "pvbinder", "the name of the lease")
	flags.DurationVar(&o.election.lease, "leader-elect-lease-duration", 15*time.Second, "how long others wait before they take over from a leader that is not heard of")
	flags.DurationVar(&o.election.renew, "leader-elect-renew-deadline", 10*time.Second, "after how long a leader gives up that cannot renew its lease")
	flags.DurationVar(&o.election.retry, "leader-elect-retry-period", 2*time.Second, "the time between two attempts to get or renew the lease")

	flags.StringVar(&o.address, "bind-address", ":8080", "where /livez, /readyz, /healthz and /metrics are served; empty for nowhere")
	flags.StringVar(&o.logFormat, "logging-format", "text", "text or json")
	flags.IntVar(&o.verbosity, "v", 0, "how much is logged, by the levels of Kubernetes")
}

// check finds what cannot be, before anything is begun.
func (o *options) check() error {
	switch {
	case o.qps == 0:
		return errors.New("--kube-api-qps is 0")
	case o.qps > 0 && o.burst < 1:
		return fmt.Errorf("--kube-api-burst is %d, less than 1", o.burst)
	case o.workers < 1:
		return fmt.Errorf("--workers is %d, less than 1", o.workers)
	case o.resync < 0:
		return fmt.Errorf("--resync is negative: %s", o.resync)
	case o.protection && !o.watchPods:
		return errors.New("--protection needs --watch-pods")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--logging-format is neither text nor json: %q", o.logFormat)
	case o.verbosity < 0:
		return fmt.Errorf("--v is negative: %d", o.verbosity)
	}
	if _, _, err := net.SplitHostPort(o.address); o.address != "" && err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	if o.elect {
		return o.election.check()
	}
	return nil
}
