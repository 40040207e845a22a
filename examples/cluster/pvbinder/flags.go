package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/examples/cluster/program"
)

// options are what the flags say. Names and defaults are kube-controller-manager's where it has the same.
type options struct {
	program.Common
	contentType string

	workers    int
	resync     time.Duration
	protection bool
	watchPods  bool

	elect    bool
	election election

	address string
}

// contentTypes are those that client-go can write in. With any other it lists and watches, and fails at every write.
var contentTypes = []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON, runtime.ContentTypeCBOR}

const usage = `Usage: pvbinder [flags]

Binds claims and volumes in place of kube-controller-manager's persistentvolume-binder-controller, which must be
switched off: kube-controller-manager --controllers='*,-persistentvolume-binder-controller'

`

// Define defines the flags.
func (o *options) Define(flags *flag.FlagSet) {
	o.Common.Define(flags)
	flags.StringVar(&o.contentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf", "the `type` that requests are sent in")

	flags.IntVar(&o.workers, "workers", 64, "claims and volumes that are worked on at once")
	flags.DurationVar(&o.resync, "resync", 10*time.Minute, "how often everything is looked at though nothing has changed; 0 is never")
	flags.BoolVar(&o.protection, "protection", true, "do also what persistentvolumeclaim-protection-controller and persistentvolume-protection-controller do; beside them it changes nothing")
	flags.BoolVar(&o.watchPods, "watch-pods", true, "watch pods, so that claims say which pods they wait for; --protection needs it")

	flags.BoolVar(&o.elect, "leader-elect", true, "work only while holding the lease, so that others may stand by")
	flags.StringVar(&o.election.namespace, "leader-elect-resource-namespace", "kube-system", "the namespace of the lease")
	flags.StringVar(&o.election.name, "leader-elect-resource-name", "pvbinder", "the name of the lease")
	flags.DurationVar(&o.election.lease, "leader-elect-lease-duration", 15*time.Second, "how long others wait before they take over from a leader that is not heard of")
	flags.DurationVar(&o.election.renew, "leader-elect-renew-deadline", 10*time.Second, "after how long a leader gives up that cannot renew its lease")
	flags.DurationVar(&o.election.retry, "leader-elect-retry-period", 2*time.Second, "the time between two attempts to get or renew the lease")

	flags.StringVar(&o.address, "bind-address", ":8080", "where /livez, /readyz, /healthz and /metrics are served; empty for nowhere")
}

// Check finds what cannot be, before anything is begun.
func (o *options) Check() error {
	if err := o.Common.Check(); err != nil {
		return err
	}
	switch {
	case !slices.Contains(contentTypes, o.contentType):
		return fmt.Errorf("--kube-api-content-type is %q, none of %s", o.contentType, strings.Join(contentTypes, ", "))
	case o.workers < 1:
		return fmt.Errorf("--workers is %d, less than 1", o.workers)
	case o.resync < 0:
		return fmt.Errorf("--resync is negative: %s", o.resync)
	case o.protection && !o.watchPods:
		return errors.New("--watch-pods=false needs --protection=false")
	}
	if _, _, err := net.SplitHostPort(o.address); o.address != "" && err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	if o.elect {
		return o.election.check()
	}
	return nil
}
