package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// election is how one of several pvbinders becomes the one that works. Two at work at once would do no harm, for each
// write is made on the version that it was decided on; but they would do the work twice.
type election struct {
	namespace, name     string
	lease, renew, retry time.Duration
}

func (e election) check() error {
	switch {
	case e.namespace == "" || e.name == "":
		return errors.New("--leader-elect-resource-namespace and --leader-elect-resource-name must not be empty")
	case e.lease < time.Second:
		return fmt.Errorf("--leader-elect-lease-duration is %s, less than a second", e.lease)
	case e.retry <= 0:
		return fmt.Errorf("--leader-elect-retry-period is %s, not positive", e.retry)
	case e.renew >= e.lease:
		return fmt.Errorf("--leader-elect-renew-deadline is %s, not less than --leader-elect-lease-duration, %s", e.renew, e.lease)
	case float64(e.renew) <= leaderelection.JitterFactor*float64(e.retry):
		return fmt.Errorf("--leader-elect-renew-deadline is %s, not more than %g times --leader-elect-retry-period, %s", e.renew, leaderelection.JitterFactor, e.retry)
	}
	return nil
}

var errLostLease = errors.New("the lease was lost: it could not be renewed in time")

// lead waits for the lease, works while it has it, and gives it back when the work has ended, so that the next takes
// over at once.
func (e election) lead(ctx context.Context, clientset kubernetes.Interface, adaptor *leaderelection.HealthzAdaptor, work func(context.Context) error) error {
	elected := make(chan context.Context, 1)
	elector, err := e.elector(clientset, func(leading context.Context) { elected <- leading })
	if err != nil {
		return err
	}
	adaptor.SetLeaderElection(elector)
	electing, resign := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electing)
	}()
	defer func() {
		resign()
		<-over
	}()
	select {
	case <-ctx.Done():
		return nil
	case leading := <-elected:
		return workWhile(ctx, leading, work)
	}
}

// workWhile works until either context ends.
func workWhile(ctx, leading context.Context, work func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	if err := work(working); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return errLostLease
	}
	return nil
}

func (e election) elector(clientset kubernetes.Interface, elected func(context.Context)) (*leaderelection.LeaderElector, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.namespace, Name: e.name},
			Client:     clientset.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: cmp.Or(os.Getenv("POD_NAME"), host) + "_" + rand.String(8)},
		},
		LeaseDuration:   e.lease,
		RenewDeadline:   e.renew,
		RetryPeriod:     e.retry,
		ReleaseOnCancel: true,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: elected, OnStoppedLeading: func() {}},
	})
}
