package clientgo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// proxy stands between a clientset and its server. Requests whose method and path contain over it answers in the server's place:
// with success and the body, and a watch so that the informer lists.
type proxy struct {
	server http.RoundTripper

	mu         sync.Mutex
	over, body string
	lists      int // that it has answered
}

func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == "" || !strings.Contains(r.Method+" "+r.URL.Path, p.over) {
		return p.server.RoundTrip(r)
	}
	code, body := http.StatusOK, p.body
	switch query := r.URL.Query(); {
	case query.Has("sendInitialEvents"):
		code, body = http.StatusUnprocessableEntity, streamingRefused
	case query.Has("watch"):
		code, body = http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	case strings.HasSuffix(r.URL.Path, p.over):
		p.lists++
	}
	return reply(r, code, body), nil
}

const streamingRefused = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`

func reply(to *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: to, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func (p *proxy) answer(over, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.body, p.lists = over, body, 0
}

func (p *proxy) answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists
}

// behindProxy returns a clientset whose requests go through a proxy.
func behindProxy(t *testing.T, server *apitest.Server) (*kubernetes.Clientset, *proxy) {
	t.Helper()
	between, config := &proxy{}, server.Start(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		between.server = next
		return between
	})
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return set, between
}

// What a proxy may answer with success. client-go decodes all of them as an empty object, or an empty list.
var empties = map[string]string{
	"nothing in it": `{}`,
	"null":          `null`,
	"a Status":      `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
	"another kind":  `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`,
}

func TestV3AReplyThatIsNoObjectIsAnError(t *testing.T) {
	server := newPair(t)
	set, between := behindProxy(t, server)
	client := &clientgo.Client{Clientset: set}
	volume, claim := server.Volume("disk"), server.Claim("default", "data")
	for name, body := range empties {
		t.Run(name, func(t *testing.T) {
			between.answer("/", body)
			ctx, notThis := t.Context(), "the reply is not "
			_, err := client.GetVolume(ctx, "disk")
			require.ErrorContains(t, err, notThis+"pv/disk")
			_, err = client.GetClaim(ctx, "default", "data")
			require.ErrorContains(t, err, notThis+"pvc/default/data")
			_, err = client.UpdateVolume(ctx, volume)
			require.ErrorContains(t, err, notThis+"pv/disk")
			_, err = client.UpdateVolumeStatus(ctx, volume)
			require.ErrorContains(t, err, notThis)
			_, err = client.UpdateClaim(ctx, claim)
			require.ErrorContains(t, err, notThis+"pvc/default/data")
			_, err = client.UpdateClaimStatus(ctx, claim)
			require.ErrorContains(t, err, notThis)
			_, err = client.CreateVolume(ctx, bindingtest.Volume("new", "1Gi"))
			require.ErrorContains(t, err, notThis+"pv/new")
			_, err = client.ListClaims(ctx)
			require.ErrorContains(t, err, "the reply is no list of pvc")
			_, err = client.ListPods(ctx, "default")
			require.ErrorContains(t, err, "the reply is no list of pods/default")
			_, err = client.ListAttachments(ctx)
			require.ErrorContains(t, err, "the reply is no list of volumeattachments")
		})
	}
}

// What is cut short, by a proxy that forwards metadata or the first page alone, is an error too.
func TestV3AReplyThatIsNotWholeIsAnError(t *testing.T) {
	set, between := behindProxy(t, newPair(t))
	client, ctx := &clientgo.Client{Clientset: set}, t.Context()
	between.answer("/", `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"namespace":"default","name":"data","uid":"other","resourceVersion":"99999"}}`)
	_, err := client.GetClaim(ctx, "default", "data")
	require.ErrorContains(t, err, "the reply to pvc/default/data is not whole")
	between.answer("/", `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"disk","uid":"other","resourceVersion":"99999"},"spec":{"capacity":{"storage":"1Gi"}}}`)
	_, err = client.GetVolume(ctx, "disk")
	require.ErrorContains(t, err, "the reply to pv/disk is not whole")
	between.answer("/", `{"kind":"PersistentVolumeClaimList","apiVersion":"v1","metadata":{"resourceVersion":"99999","continue":"more"},"items":[]}`)
	_, err = client.ListClaims(ctx)
	require.ErrorContains(t, err, "the list of pvc is not whole")
	between.answer("/", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"99999","continue":"more"},"items":[]}`)
	_, err = client.ListPods(ctx, "default")
	require.ErrorContains(t, err, "the list of pods/default is not whole")
	between.answer("/", `{"kind":"VolumeAttachmentList","apiVersion":"storage.k8s.io/v1","metadata":{"resourceVersion":"99999","continue":"more"},"items":[]}`)
	_, err = client.ListAttachments(ctx)
	require.ErrorContains(t, err, "the list of volumeattachments is not whole")
}

// What keeps lists and answers them in the server's place is noticed by a list that is older than one before. The next one is
// believed, for the server may have been restored.
func TestV3AListFromThePastIsAnError(t *testing.T) {
	const old = `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"1"},"items":[]}`
	server := newServer(t, bindingtest.Pod("default", "web", "node", "data"), bindingtest.Pod("other", "web", "node", "data"), bindingtest.Attachment("disk", "node"), bindingtest.Claim("default", "data", "5Gi"))
	set, between := behindProxy(t, server)
	for kind, test := range map[string]struct {
		version string
		read    func(context.Context, *clientgo.Client) error // what shows how far the server is
		list    func(context.Context, *clientgo.Client) (int, error)
	}{
		"PersistentVolumeClaim": {"v1", listClaims, func(ctx context.Context, c *clientgo.Client) (int, error) {
			found, err := c.ListClaims(ctx)
			return len(found), err
		}},
		"Pod": {"v1", listPodsElsewhere, func(ctx context.Context, c *clientgo.Client) (int, error) {
			found, err := c.ListPods(ctx, "other")
			return len(found), err
		}},
		"VolumeAttachment": {"storage.k8s.io/v1", listAttachments, func(ctx context.Context, c *clientgo.Client) (int, error) {
			found, err := c.ListAttachments(ctx)
			return len(found), err
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			client, ctx := &clientgo.Client{Clientset: set}, t.Context()
			for range 2 {
				between.answer("", "")
				require.NoError(t, test.read(ctx, client))
				between.answer("/", fmt.Sprintf(old, kind, test.version))
				_, err := test.list(ctx, client)
				require.ErrorContains(t, err, "was seen before")
				found, err := test.list(ctx, client)
				require.NoError(t, err, "the server may have been restored")
				assert.Zero(t, found)
			}
			between.answer("", "")
			found, err := test.list(ctx, client)
			require.NoError(t, err)
			assert.Equal(t, 1, found)
		})
	}
	for kind, list := range map[string]func(context.Context, *clientgo.Client) error{
		"claims": listClaims, "pods": listPodsElsewhere, "attachments": listAttachments,
	} {
		t.Run("what is known of a claim or a volume counts too, for "+kind, func(t *testing.T) {
			client, ctx := &clientgo.Client{Clientset: set}, t.Context()
			client.Reached(server.Claim("default", "data").ResourceVersion)
			between.answer("/", `{"metadata":{"resourceVersion":"1"},"items":[]}`)
			require.ErrorContains(t, list(ctx, client), "has resourceVersion 1, and ")
			require.NoError(t, list(ctx, client))
			between.answer("", "")
			require.NoError(t, list(ctx, client))
		})
	}
}

func listClaims(ctx context.Context, c *clientgo.Client) error {
	_, err := c.ListClaims(ctx)
	return err
}

func listPodsElsewhere(ctx context.Context, c *clientgo.Client) error {
	_, err := c.ListPods(ctx, "default")
	return err
}

func listAttachments(ctx context.Context, c *clientgo.Client) error {
	_, err := c.ListAttachments(ctx)
	return err
}

// What keeps a NotFound of the API server and answers it in its place, as of before the object, does not hide it; nor does it prove
// the absence of one that is gone again.
func TestV3AReadThatIsNotFoundIsConfirmed(t *testing.T) {
	server := newPair(t)
	config := server.Start(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &keepsNotFound{next} })
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	client := &clientgo.Client{Clientset: set}
	claim, err := client.GetClaim(t.Context(), "default", "data")
	require.NoError(t, err)
	assert.Equal(t, server.Claim("default", "data").UID, claim.UID)
	volume, err := client.GetVolume(t.Context(), "disk")
	require.NoError(t, err)
	assert.Equal(t, server.Volume("disk").UID, volume.UID)
	_, err = client.GetClaim(t.Context(), "default", "other")
	assert.True(t, obj.IsAbsent(err, obj.ClaimKey("default", "other")), "%v", err)
	assert.NotEmpty(t, obj.AbsentAsOf(err))
	_, err = client.GetVolume(t.Context(), "other")
	assert.True(t, obj.IsAbsent(err, obj.VolumeKey("other")), "%v", err)
	assert.NotEmpty(t, obj.AbsentAsOf(err))
}

// keepsNotFound answers each read of a claim or a volume as the API server did before there was any.
type keepsNotFound struct{ next http.RoundTripper }

func (k keepsNotFound) RoundTrip(r *http.Request) (*http.Response, error) {
	resource, name := path.Split(r.URL.Path)
	if r.Method != http.MethodGet || !strings.HasPrefix(path.Base(resource), "persistentvolume") {
		return k.next.RoundTrip(r)
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not found","reason":"NotFound","details":{"name":%q,"kind":%q},"code":404}`, name, path.Base(resource))
	return &http.Response{StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A proxy that answers all reads of claims, lists too, with success and {} ends none of them.
func TestW8ALostClaimIsNotWhatAProxySays(t *testing.T) {
	server, ours := newServer(t, bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}), bindingtest.Claim("default", "data", "5Gi")), &deleter{}
	set, between := behindProxy(t, server)
	r := start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Resync = set, 10*time.Millisecond
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": ours}
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	between.answer("/persistentvolumeclaims", `{}`)
	r.Disconnect()
	r.eventually(func() bool { return between.answered() > 0 }, "the informer has listed")
	between.answer("", "")
	pair(t, server, "next")
	r.eventually(func() bool { return r.bound("next") }, "work goes on")
	assert.Zero(t, ours.calls.Load(), "X2")
	assert.Equal(t, corev1.VolumeBound, r.phase("disk"))
	assert.True(t, r.bound("data"), "X4")
}
