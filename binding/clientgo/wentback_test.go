package clientgo_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// text is what is logged.
type text struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *text) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.Buffer.String(), of)
}

// told counts the events that tell of a restore.
func told(server *apitest.Server) (n int) {
	for _, event := range server.Events() {
		if event.Reason == decision.EventServerWentBack {
			n++
		}
	}
	return n
}

// The informers of all kinds notice one restore: that is told once, all that was known is read, and work goes on. No resync
// has a part in it.
func TestW8TheRunnerNotices(t *testing.T) {
	server, ours, registry, log := newPair(t), &deleter{}, prometheus.NewRegistry(), &text{}
	r := start(t, server, func(r *clientgo.Runner) {
		r.Resync, r.Registerer, r.Recorder = -1, registry, server.Server
		r.Logger = slog.New(slog.NewTextHandler(log, nil))
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": ours}
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	for i, name := range []string{"first", "second"} {
		times := i + 1
		snapshot := server.Snapshot()
		pair(t, server, "lost-"+name)
		r.eventually(func() bool { return r.bound("lost-" + name) }, "another claim is bound, which the backup does not have")
		server.Restore(snapshot)
		r.eventually(func() bool { return told(server) == times }, "N the event is sent")
		pair(t, server, name)
		r.eventually(func() bool { return r.bound(name) }, "work goes on")
		r.eventually(func() bool { return counted(t, registry, "pvbind_server_went_back_total") == float64(times) }, "the metric counts it once")
		assert.Equal(t, times, log.count("the server went back in time; nothing is destroyed"), "so does the log")
		assert.Equal(t, times, told(server), "and so do events")
	}
	assert.True(t, r.bound("data"))
}

// While the server is away something else answers that nobody may watch or list, as a load balancer or a server that starts does. An informer that has begun
// no watch twice notices none the less.
func TestW8AnInformerNoticesWhatCameBehindAnError(t *testing.T) {
	server := newPair(t)
	claims := clientset(t, server).CoreV1().PersistentVolumeClaims("")
	informer := clientgo.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return claims.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, options)
		},
	}, &corev1.PersistentVolumeClaim{}, 0, cache.Indexers{})
	noticed := make(chan error, 100)
	informer.(interface{ OnWentBack(func(error)) }).OnWentBack(func(err error) { noticed <- err })
	go informer.RunWithContext(t.Context())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	snapshot := server.Snapshot()
	pair(t, server, "lost")
	require.Eventually(t, func() bool { return len(informer.GetStore().List()) == 2 }, patience, time.Millisecond)

	denied := make(chan struct{}, 100)
	server.Deny(func(request apitest.Request) bool {
		denied <- struct{}{}
		return true
	})
	server.Disconnect()
	for range 3 { // the watch is begun again, and then the list
		<-denied
	}
	server.Restore(snapshot)
	server.Deny(nil)
	select {
	case <-noticed:
	case <-time.After(patience):
		require.Fail(t, "the informer does not notice")
	}
	require.Eventually(t, func() bool { return len(informer.GetStore().List()) == 1 }, patience, time.Millisecond)
}

// pair creates a claim and a volume for it.
func pair(t *testing.T, server *apitest.Server, name string) {
	t.Helper()
	for _, object := range []obj.Object{bindingtest.Volume("disk-of-"+name, "10Gi"), bindingtest.Claim("default", name, "5Gi")} {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
}

// Informers that are client-go's own are blind after a restore: the resync finds that, and work goes on without a restart.
func TestW8InformersOfTheProgramAreBlind(t *testing.T) {
	server, ours, log := newPair(t), &deleter{}, &text{}
	r := start(t, server, func(r *clientgo.Runner) {
		r.Informers = informers.NewSharedInformerFactory(r.Clientset, 0)
		r.Resync, r.Recorder = 50*time.Millisecond, server.Server
		r.Logger = slog.New(slog.NewTextHandler(log, nil))
		r.Hooks.SourceDeleters = map[string]hooks.Deleter{"hostPath": ours}
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	snapshot := server.Snapshot()
	pair(t, server, "lost")
	r.eventually(func() bool { return r.bound("lost") }, "another claim is bound, which the backup does not have")
	server.Restore(snapshot)
	pair(t, server, "later")
	r.eventually(func() bool { return r.bound("later") }, "what comes after the restore is seen")
	r.eventually(func() bool { return told(server) == 1 }, "N the event is sent")
	assert.Equal(t, 1, log.count("the Runner watches by itself"))
	remove(t, server, "data")
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 and so is what goes")
	assert.Zero(t, ours.calls.Load(), "R2")
	require.NoError(t, r.stop())
}

// W8, F2: nobody reports the end of a pod that the restore has taken, where informers of our own take the place of those that had it. It keeps no claim.
func TestW8APodThatTheRestoreHasTaken(t *testing.T) {
	server := newPair(t)
	shared := informers.NewSharedInformerFactory(clientset(t, server), 0)
	r := start(t, server, func(r *clientgo.Runner) {
		r.Informers, r.Resync, r.Options.Protection = shared, 50*time.Millisecond, decision.ProtectionOn
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	snapshot := server.Snapshot()
	_, err := server.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data"))
	require.NoError(t, err)
	r.eventually(func() bool { return len(shared.Core().V1().Pods().Informer().GetStore().List()) == 1 }, "the pod is shown")
	server.Restore(snapshot)
	pair(t, server, "later")
	r.eventually(func() bool { return r.bound("later") }, "what comes after the restore is seen")
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	r.eventually(func() bool { return server.Claim("default", "data") == nil }, "no pod keeps the claim")
	require.NoError(t, r.stop())
}

// podGate blocks lists of all pods once it is closed, until it is released.
type podGate struct {
	http.RoundTripper
	closed   atomic.Bool
	reached  chan struct{} // has one item if a list was blocked
	released chan struct{}
}

func (g *podGate) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	lists := request.URL.Path == "/api/v1/pods" && (query.Get("watch") == "" || query.Get("sendInitialEvents") != "")
	if lists && query.Get("limit") != "1" && g.closed.Load() { // a list of one shows how far the server is
		select {
		case g.reached <- struct{}{}:
		default:
		}
		select {
		case <-g.released:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return g.RoundTripper.RoundTrip(request)
}

// gated returns a clientset on the server, and the gate of its lists of pods.
func gated(t *testing.T, server *apitest.Server) (*kubernetes.Clientset, *podGate) {
	t.Helper()
	gate := &podGate{reached: make(chan struct{}, 1), released: make(chan struct{})}
	config := server.Start(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		gate.RoundTripper = next
		return gate
	})
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return set, gate
}

// W8, F2: so it is where the program's informers list anew when they report to nobody any more, and before ours have listed: then no
// store has the pod, which is known all the same.
func TestW8APodThatTheProgramsInformerHasLostMeanwhile(t *testing.T) {
	server, log := newPair(t), &text{}
	programs, theirs := gated(t, server)
	set, ours := gated(t, server)
	shared := clientgo.NewInformers(programs, clientgo.PodsWatched, hooks.Set{}, func(string, error) {})
	r := start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Informers, r.Resync, r.Options.Protection = set, shared, 50*time.Millisecond, decision.ProtectionOn
		r.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	snapshot := server.Snapshot()
	_, err := server.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data"))
	require.NoError(t, err)
	pods := func() int { return len(shared.Core().V1().Pods().Informer().GetStore().List()) }
	r.eventually(func() bool { return pods() == 1 }, "the pod is shown")
	theirs.closed.Store(true)
	ours.closed.Store(true)
	server.Restore(snapshot)
	select {
	case <-ours.reached: // the Runner watches by itself
	case <-time.After(patience):
		require.Fail(t, "the Runner does not watch by itself")
	}
	close(theirs.released)
	r.eventually(func() bool { return pods() == 0 }, "the program's informer lists anew")
	close(ours.released)
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	r.eventually(func() bool { return server.Claim("default", "data") == nil }, "no pod keeps the claim")
	assert.Equal(t, 1, log.count("the Runner watches by itself"))
	require.NoError(t, r.stop())
}

// Informers of a program that are made by InformerOf list anew, and are kept.
func TestW8InformersOfTheProgramThatNotice(t *testing.T) {
	server, log := newPair(t), &text{}
	r := start(t, server, func(r *clientgo.Runner) {
		r.Informers = clientgo.NewInformers(r.Clientset, r.Pods, r.Hooks, func(string, error) {})
		r.Resync, r.Recorder = 50*time.Millisecond, server.Server
		r.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	snapshot := server.Snapshot()
	pair(t, server, "lost")
	r.eventually(func() bool { return r.bound("lost") }, "another claim is bound, which the backup does not have")
	server.Restore(snapshot)
	pair(t, server, "later")
	r.eventually(func() bool { return r.bound("later") }, "what comes after the restore is seen")
	r.eventually(func() bool { return told(server) == 1 }, "N the event is sent")
	require.NoError(t, r.stop())
	assert.Zero(t, log.count("the Runner watches by itself"))
}

func TestPositionOfAServer(t *testing.T) {
	for _, test := range []struct {
		name, seen, list string
		back             bool
	}{
		{"nothing was seen", "", "5", false},
		{"it is where it was", "5", "5", false},
		{"it goes on", "5", "10", false},
		{"it went back", "10", "9", true},
		{"by number, not by text", "9", "10", false},
		{"versions that cannot be compared prove nothing", "abc", "5", false},
		{"nor do those of the list", "5", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p clientgo.Position
			if test.seen != "" {
				p.Reached(test.seen)
			}
			err := p.Check(test.list)
			require.Equal(t, test.back, err != nil, "%v", err)
			if test.back {
				require.ErrorContains(t, err, "has reached resourceVersion 9 only, not 10")
				assert.NoError(t, p.Check(test.list), "it is told once")
			}
		})
	}
}
