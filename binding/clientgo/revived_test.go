package clientgo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
)

// keepsObject answers each read of a path with what it keeps, if anything, in the server's place.
type keepsObject struct {
	next http.RoundTripper
	path string
	kept atomic.Pointer[string]
}

func (k *keepsObject) RoundTrip(r *http.Request) (*http.Response, error) {
	kept := k.kept.Load()
	if kept == nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, k.path) {
		return k.next.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(*kept)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(*kept))}, nil
}

// keep has an object answered as it is now.
func (k *keepsObject) keep(t *testing.T, object obj.Object, kind string) {
	t.Helper()
	object = object.DeepCopyObject().(obj.Object)
	object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	text, err := json.Marshal(object)
	require.NoError(t, err)
	kept := string(text)
	k.kept.Store(&kept)
}

// startBehind runs a Runner behind what may keep an object of that path.
func startBehind(t *testing.T, server *apitest.Server, path string) (*running, *keepsObject) {
	t.Helper()
	config, between := server.Start(t), &keepsObject{path: path}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		between.next = next
		return between
	})
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Recorder, r.Resync = set, server.Server, 50*time.Millisecond
	}), between
}

// A claim that a cache, in the server's place, shows for a while after its end is no more, once it does not: the informer, which has
// told of its end, tells of nothing more.
func TestW7AClaimThatACacheHasRevived(t *testing.T) {
	server := newPair(t)
	r, between := startBehind(t, server, "/persistentvolumeclaims/data")
	r.eventually(func() bool { return r.bound("data") && r.phase("disk") == corev1.VolumeBound }, "the claim is bound")
	between.keep(t, server.Claim("default", "data"), "PersistentVolumeClaim")
	remove(t, server, "data")
	r.eventually(func() bool { return told(server) > 0 }, "W8 it is there again, as it seems")
	between.kept.Store(nil)
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 the volume is released")
}

func TestW7AVolumeThatACacheHasRevived(t *testing.T) {
	server := newPair(t)
	r, between := startBehind(t, server, "/persistentvolumes/disk")
	r.eventually(func() bool { return r.bound("data") && r.phase("disk") == corev1.VolumeBound }, "the claim is bound")
	disk := server.Volume("disk")
	between.keep(t, disk, "PersistentVolume")
	disk.Finalizers = nil
	_, err := server.Update(t.Context(), disk)
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), obj.VolumeKey("disk"), deleteNow))
	r.eventually(func() bool { return told(server) > 0 }, "W8 it is there again, as it seems")
	between.kept.Store(nil)
	r.eventually(func() bool { return server.Claim("default", "data").Status.Phase == corev1.ClaimLost }, "C10 the claim is lost")
}
