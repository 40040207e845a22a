package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clients are two clientsets, so that a burst of writes does not keep the lease from being renewed, and events do not
// delay writes.
type clients struct {
	work  *kubernetes.Clientset
	aside *kubernetes.Clientset // for events and the lease
}

func (o *options) connect() (clients, error) {
	config, err := o.config()
	if err != nil {
		return clients{}, err
	}
	config.QPS, config.Burst = float32(o.qps), o.burst
	config.ContentType = o.contentType
	config.AcceptContentTypes = o.contentType + ",application/json"
	work, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "pvbinder"))
	if err != nil {
		return clients{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	config.Timeout = max(time.Second, o.election.renew/2)
	aside, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "pvbinder-aside"))
	if err != nil {
		return clients{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	return clients{work, aside}, nil
}

// config is how to reach the API server: as the flags say, or else as a pod does.
func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig == "" && o.master == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("neither --kubeconfig nor --master is set, and this is no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}
