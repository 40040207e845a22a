package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// clients has two clientsets, so that a burst of writes does not keep the lease from being renewed, and events do not
// delay writes.
type clients struct {
	work  *kubernetes.Clientset
	other *kubernetes.Clientset // for events and the lease
}

func (o *options) connect() (clients, error) {
	config, err := o.Config(o.contentType)
	if err != nil {
		return clients{}, err
	}
	work, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "pvbinder"))
	if err != nil {
		return clients{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.Timeout = max(time.Second, o.election.renew/2)
	other, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "pvbinder-events-and-lease"))
	if err != nil {
		return clients{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	return clients{work, other}, nil
}
