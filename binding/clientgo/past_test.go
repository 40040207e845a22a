package clientgo_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// V3, F2, X2: the only list of pods that a Runner reads is one from before the claim was deleted, and before a pod began to use it, which
// no watch shows yet. That the claim goes was known before the list was requested.
func TestF2AListOfPodsFromBeforeTheClaimGoesIsReadAgain(t *testing.T) {
	server := newServer(t, bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}), bindingtest.Claim("default", "data", "5Gi"))
	web := bindingtest.PodKey("default", "web")
	uses := func() bool {
		_, err := server.Get(context.Background(), web)
		return err == nil
	}
	between, config := &lateWithPods{late: make(chan struct{})}, server.Start(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		between.next = next
		return between
	})
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	var deletedUnderAPod, deleted atomic.Int32
	r := start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Recorder = set, server.Server
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": deletes(func() {
			deleted.Add(1)
			if uses() {
				deletedUnderAPod.Add(1)
			}
		})}
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")

	past, err := set.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").DoRaw(t.Context())
	require.NoError(t, err)
	kept := string(past)
	between.holds.Store(true)
	between.kept.Store(&kept)
	require.NoError(t, second(server.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data"))))
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	r.eventually(func() bool { return between.lists.Load() > 1 || deleted.Load() > 0 }, "W6 the pods are listed again")
	require.NotNil(t, server.Claim("default", "data"), "F2")
	require.NoError(t, server.Delete(t.Context(), web, deleteNow))
	close(between.late)
	r.eventually(func() bool { return server.Volume("disk") == nil }, "R3 nobody uses it any more")
	assert.Zero(t, deletedUnderAPod.Load(), "X2")
}

// deletes is a Deleter that succeeds.
type deletes func()

func (d deletes) Delete(context.Context, hooks.ReclaimRequest) error {
	d()
	return nil
}

// lateWithPods answers one list of the pods of a namespace with what it keeps, in the server's place, and holds back what watches of pods
// show, once it is to.
type lateWithPods struct {
	next  http.RoundTripper
	kept  atomic.Pointer[string]
	lists atomic.Int32 // since it was to keep one
	holds atomic.Bool
	late  chan struct{} // until it is closed
}

func (l *lateWithPods) RoundTrip(r *http.Request) (*http.Response, error) {
	watches := r.URL.Query().Has("watch")
	if r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/default/pods" && !watches && l.holds.Load() {
		l.lists.Add(1)
		if kept := l.kept.Swap(nil); kept != nil {
			return reply(r, http.StatusOK, *kept), nil
		}
	}
	got, err := l.next.RoundTrip(r)
	if err == nil && watches && r.URL.Path == "/api/v1/pods" {
		got.Body = lateBody{got.Body, l, r.Context().Done()}
	}
	return got, err
}

// lateBody is what a watch shows, late.
type lateBody struct {
	io.ReadCloser
	by    *lateWithPods
	ended <-chan struct{}
}

func (b lateBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if b.by.holds.Load() {
		select {
		case <-b.by.late:
		case <-b.ended:
		}
	}
	return n, err
}
