package clientgo_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
)

// gate holds up what comes first: it says when it has come, and lets it wait until it is let through.
type gate struct {
	once      sync.Once
	came, let chan struct{}
}

func newGate() *gate { return &gate{came: make(chan struct{}), let: make(chan struct{})} }

func (g *gate) hook(call *bindingtest.Call, do func() error) error {
	if call.Writes() {
		g.wait()
	}
	return do()
}

func (g *gate) wait() {
	g.once.Do(func() {
		close(g.came)
		<-g.let
	})
}

func TestStopLetsSyncsEnd(t *testing.T) {
	server := newServer(t,
		bindingtest.Volume("disk-0", "10Gi"), bindingtest.Claim("default", "data-0", "5Gi"),
		bindingtest.Volume("disk-1", "10Gi"), bindingtest.Claim("default", "data-1", "5Gi"))
	gate := newGate()
	server.Client.Use(gate.hook)
	r := start(t, server, func(r *clientgo.Runner) { r.Workers, r.StopWithin = 1, time.Hour })
	<-gate.came
	r.end()
	close(gate.let)
	require.NoError(t, r.stop())
	assert.Equal(t, 4, r.calls(bindingtest.VerbUpdate), "B5 the bind that had begun is finished, and no other begins")
	assert.NotEqual(t, r.bound("data-0"), r.bound("data-1"))
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	server := newPair(t)
	gate := newGate()
	defer close(gate.let)
	server.Client.Use(gate.hook)
	r := start(t, server, func(r *clientgo.Runner) { r.StopWithin = time.Millisecond })
	<-gate.came
	require.NoError(t, r.stop())
	assert.False(t, r.bound("data"))
}

func TestStopBeforeTheCachesAreFilled(t *testing.T) {
	server := newPair(t)
	server.Client.Use(func(call *bindingtest.Call, do func() error) error { return http.ErrServerClosed })
	server.Deny(func(request apitestRequest) bool { return request.Resource == "storageclasses" })
	r := start(t, server)
	require.NoError(t, r.stop())
	assert.Zero(t, r.calls(bindingtest.VerbUpdate))
}

func TestClassesComeFirst(t *testing.T) {
	mode := delayed
	server := newServer(t,
		bindingtest.Class("local", func(class *class) { class.VolumeBindingMode = &mode }),
		bindingtest.Volume("disk", "10Gi", func(volume *corev1.PersistentVolume) { volume.Spec.StorageClassName = "local" }),
		bindingtest.Claim("default", "data", "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &[]string{"local"}[0] }))
	first := make(chan struct{})
	var once sync.Once
	server.Deny(func(request apitestRequest) bool {
		if request.Resource == "storageclasses" {
			defer once.Do(func() { close(first) })
		}
		return request.Resource == "storageclasses"
	})
	r := start(t, server)
	<-first
	server.Deny(nil)
	r.eventually(r.has(decision.EventWaitForConsumer), "C3 the claim waits for a pod")
	assert.Nil(t, r.Volume("disk").Spec.ClaimRef, "M11 it was not bound before its class was known")
}
