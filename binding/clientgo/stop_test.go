package clientgo_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

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

// Whoever asks a server that never answers asks in vain, but does not wait for ever: only the lists and watches of informers have no
// deadline, which client-go makes anew.
func TestRequestsHaveADeadline(t *testing.T) {
	for name, factory := range map[string]func(kubernetes.Interface) informers.SharedInformerFactory{
		"a resync asks how far the server is, where informers are the program's": func(set kubernetes.Interface) informers.SharedInformerFactory {
			return informers.NewSharedInformerFactory(set, 0)
		},
		"informers of ours ask when a watch begins": func(kubernetes.Interface) informers.SharedInformerFactory { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := newPair(t), &deadlines{}
			config := server.Start(t)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				asked.server = next
				return asked
			})
			set, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			r := start(t, server, func(r *clientgo.Runner) {
				r.Clientset, r.Informers, r.Resync = set, factory(set), 50*time.Millisecond
			})
			r.eventually(func() bool { return r.bound("data") && asked.small.Load() > 0 }, "it binds, and asks")
			require.NoError(t, r.stop())
			assert.Empty(t, asked.without)
		})
	}
}

// deadlines notes the requests that have no deadline, but for those of informers. They cannot stream a list, and watch after it.
type deadlines struct {
	server http.RoundTripper
	small  atomic.Int32 // lists of one object

	mu      sync.Mutex
	without []string
}

func (d *deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Has("sendInitialEvents") {
		return reply(r, http.StatusUnprocessableEntity, streamingRefused), nil
	}
	if query.Get("limit") == "1" {
		d.small.Add(1)
	}
	_, has := r.Context().Deadline()
	if ofInformer := query.Has("watch") || query.Get("limit") == "500"; !has && !ofInformer {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.without = append(d.without, r.Method+" "+r.URL.String())
	}
	return d.server.RoundTrip(r)
}
