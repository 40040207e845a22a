package clientgo_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
)

type (
	apitestRequest = apitest.Request
	class          = storagev1.StorageClass
)

var unprotected = decision.Options{Protection: decision.ProtectionOff}

const delayed = storagev1.VolumeBindingWaitForFirstConsumer

func TestFieldsThatCannotBe(t *testing.T) {
	set := clientset(t, newServer(t))
	for want, runner := range map[string]*clientgo.Runner{
		"clientgo.Runner: no Clientset":         {},
		"clientgo.Runner: negative Workers: -1": {Clientset: set, Workers: -1},
		`clientgo.Runner: unknown Pods: "Some"`: {Clientset: set, Pods: "Some"},
		"clientgo.Runner: protection depends on pods, and Pods is Ignored": {
			Clientset: set, Pods: clientgo.PodsIgnored},
		"clientgo.Runner: recyclers depend on pods, and Pods is Ignored": {
			Clientset: set, Pods: clientgo.PodsIgnored, Options: unprotected, Hooks: hooks.Set{Recyclers: map[string]hooks.Recycler{"nfs": nil}}},
	} {
		assert.EqualError(t, runner.Run(t.Context()), want)
	}
}

// newWaiting is a claim that waits for a pod, and a pod that waits for a node.
func newWaiting(t *testing.T) *apitest.Server {
	t.Helper()
	mode, name := delayed, "local"
	return newServer(t,
		bindingtest.Class(name, func(class *class) { class.VolumeBindingMode = &mode }),
		bindingtest.Claim("default", "data", "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &name }),
		bindingtest.Pod("default", "web", "", "data"))
}

func TestPodsAreNamed(t *testing.T) {
	r := start(t, newWaiting(t))
	r.eventually(r.has(decision.EventWaitForPodScheduled), "C3 the pod is named")
}

func TestPodsIgnored(t *testing.T) {
	server := newWaiting(t)
	var asked atomic.Int32
	server.Deny(func(request apitestRequest) bool {
		if request.Resource == "pods" {
			asked.Add(1)
		}
		return request.Resource == "pods"
	})
	r := start(t, server, func(r *clientgo.Runner) { r.Pods, r.Options = clientgo.PodsIgnored, unprotected })
	r.eventually(r.has(decision.EventWaitForConsumer), "C3 a consumer is awaited")
	assert.Zero(t, asked.Load(), "no right to pods is needed")
}

func TestInformersOfTheProgram(t *testing.T) {
	server := newPair(t)
	var informed informers.SharedInformerFactory
	r := start(t, server, func(r *clientgo.Runner) {
		informed = informers.NewSharedInformerFactory(r.Clientset, 0)
		r.Informers = informed
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	seen, err := informed.Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims("default").Get("data")
	require.NoError(t, err, "the program sees what the runner sees")
	assert.Equal(t, "data", seen.Name)
	require.NoError(t, r.stop())
}

func TestProtobuf(t *testing.T) {
	server := newPair(t)
	r := start(t, server, func(r *clientgo.Runner) {
		config := server.Start(t)
		config.ContentType = "application/vnd.kubernetes.protobuf"
		set, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		r.Clientset = set
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
}

func TestResyncOfWhatIsSettled(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(t, newPair(t), func(r *clientgo.Runner) { r.Resync, r.Registerer = time.Millisecond, registry })
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	r.eventually(func() bool { // as soon as the informers have shown what the runner wrote
		calls, syncs := len(r.Calls()), counted(t, registry, "pvbind_syncs_total")
		r.eventually(func() bool { return counted(t, registry, "pvbind_syncs_total") > syncs+100 }, "everything is synced again and again")
		return len(r.Calls()) == calls
	}, "X8 without a request")
}

// provisioner answers in turn.
type provisioner struct {
	answers []error
	asked   int
}

func (p *provisioner) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	p.asked++
	if p.asked <= len(p.answers) {
		return nil, p.answers[p.asked-1]
	}
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt/" + request.Volume.Name}
	return request.Volume, nil
}

func TestDelaysAreObeyed(t *testing.T) {
	name := "ours"
	server := newServer(t,
		bindingtest.Class(name, func(class *class) { class.Provisioner = "example.com/ours" }),
		bindingtest.Claim("default", "data", "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &name }))
	ours := &provisioner{answers: []error{
		&hooks.Error{Meaning: hooks.InProgress, After: time.Millisecond},
		errors.New("the storage is busy"),
	}}
	r := start(t, server, func(r *clientgo.Runner) {
		r.Resync = -1
		r.Hooks.Provisioners = map[string]hooks.Provisioner{"example.com/ours": ours}
	})
	r.eventually(func() bool { return r.bound("data") }, "Rh asked again after a time, W6 and again after a failure")
	require.NoError(t, r.stop())
	assert.Equal(t, 3, ours.asked)
}
