package clientgo_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 30 * time.Second

// running is a Runner at work on a server.
type running struct {
	*apitest.Server
	t      *testing.T
	runner *clientgo.Runner
	end    context.CancelFunc
	ended  chan error
}

// newServer has these objects, created in order, on a server that is served.
func newServer(t *testing.T, objects ...obj.Object) *apitest.Server {
	t.Helper()
	server := apitest.New(bindingtest.NewServer())
	for _, object := range objects {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
	return server
}

func clientset(t *testing.T, server *apitest.Server) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(server.Start(t))
	require.NoError(t, err)
	return set
}

// start runs a Runner until the test ends, or stop is called.
func start(t *testing.T, server *apitest.Server, changes ...func(*clientgo.Runner)) *running {
	t.Helper()
	runner := &clientgo.Runner{Clientset: clientset(t, server), Logger: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(runner)
	}
	ctx, end := context.WithCancel(context.Background())
	r := &running{Server: server, t: t, runner: runner, end: end, ended: make(chan error, 1)}
	go func() { r.ended <- runner.Run(ctx) }()
	t.Cleanup(func() { r.stop() })
	return r
}

// stop ends the run and returns what it returned.
func (r *running) stop() error {
	r.t.Helper()
	r.end()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		require.Fail(r.t, "the runner does not end")
		return nil
	}
}

// eventually waits for something to become so.
func (r *running) eventually(so func() bool, what string) {
	r.t.Helper()
	require.Eventually(r.t, so, patience, 5*time.Millisecond, what)
}

func (r *running) bound(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		claim := r.Claim("default", name)
		return claim == nil || claim.Status.Phase != corev1.ClaimBound
	})
}

func (r *running) phase(volume string) corev1.PersistentVolumePhase {
	if volume := r.Volume(volume); volume != nil {
		return volume.Status.Phase
	}
	return "none"
}

// calls counts what the runner has asked the server for.
func (r *running) calls(verb bindingtest.Verb, kinds ...obj.Kind) int {
	count := 0
	for _, call := range r.Calls() {
		if call.Actor == "http" && call.Verb == verb && (len(kinds) == 0 || slices.Contains(kinds, call.Key.Kind)) {
			count++
		}
	}
	return count
}

func (r *running) has(reason decision.EventReason) func() bool {
	return func() bool {
		return slices.ContainsFunc(r.Events(), func(event decision.Event) bool { return event.Reason == reason })
	}
}

func remove(t *testing.T, server *apitest.Server, claim string) {
	t.Helper()
	stored := server.Claim("default", claim)
	stored.Finalizers = nil
	_, err := server.Update(t.Context(), stored)
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", claim), deleteNow))
}
