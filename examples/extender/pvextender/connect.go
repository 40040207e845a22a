package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func (o *options) connect() (*kubernetes.Clientset, error) {
	config, err := o.Config(runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "pvextender"))
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return clientset, nil
}
