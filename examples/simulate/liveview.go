package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

// liveView has what the server in memory has now, which fails a look-up only for what is absent.
type liveView struct {
	context.Context
	client *bindingtest.Client
}

var _ binding.PairView = liveView{}

// Volume looks up a volume.
func (v liveView) Volume(name string) (*corev1.PersistentVolume, binding.Evidence) {
	volume, err := v.client.GetVolume(v, name)
	if err != nil {
		return nil, binding.Absent
	}
	return volume, binding.Live
}

// Claim looks up a claim.
func (v liveView) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, binding.Evidence) {
	claim, err := v.client.GetClaim(v, namespace, name)
	if err != nil {
		return nil, binding.Absent
	}
	return claim, binding.Live
}
