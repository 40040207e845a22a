package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestMemoryDoesNotGrowWithChurn makes claims, has volumes provisioned for them, and deletes them, with storage and volume. What
// the Runner remembers of what is gone is bounded: with PVBIND_MODE=long, after 100,000 claims it holds at most one and a half
// times what it held after 10,000. An ordinary run is too short for all bounds to be reached; it sees a Runner that keeps an
// object, or a good part of one, of each claim. The server forgets what has happened, so that its part does not grow. The last
// long run took 17 minutes: 9,301 KiB after 10,000 claims, 10,775 KiB after 100,000.
func TestMemoryDoesNotGrowWithChurn(t *testing.T) {
	first, last, together := 100, 500, 100
	long := os.Getenv("PVBIND_MODE") == "long"
	if long {
		first, last, together = 10_000, 100_000, 500
	}
	class := bindingtest.Class("ours")
	class.Provisioner = "example.com/ours"
	server, storage := newServer(t, class), &churned{}
	set := clientset(t, server)
	empty := heap(server)
	r := start(t, server, func(r *clientgo.Runner) {
		r.Clientset, r.Resync, r.Options.Protection = set, time.Second, decision.ProtectionOn
		if !long { // client-go's recorder remembers some thousand events
			r.Recorder = nobody{}
		}
		r.Hooks = hooks.Set{Provisioners: map[string]hooks.Provisioner{class.Provisioner: storage}, Deleters: map[string]hooks.Deleter{class.Provisioner: storage}}
	})
	began := time.Now()
	r.churn(set, 0, first, together)
	before := heap(server) - empty
	r.churn(set, first, last, together)
	after := heap(server) - empty
	t.Logf("%d claims: %d KiB; %d claims: %d KiB; %.0f bytes a claim; %s", first, before>>10, last, after>>10, float64(after-before)/float64(last-first), time.Since(began).Round(time.Second))
	if long {
		assert.LessOrEqual(t, float64(after), 1.5*float64(before))
		return
	}
	r.eventually(func() bool { // on a slow machine it is still at work
		return (heap(server)-empty-before)/int64(last-first) < 1200
	}, "it holds less than 1200 bytes a claim")
}

// heap returns how many bytes are in use, without what the server remembers.
func heap(server *apitest.Server) int64 {
	server.Forget()
	var stats runtime.MemStats
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// churn makes and deletes the claims with these numbers, so many at a time.
func (r *running) churn(set kubernetes.Interface, from, to, together int) {
	r.t.Helper()
	for ; from < to; from += together {
		var names []string
		for i := from; i < from+together; i++ {
			names = append(names, fmt.Sprintf("claim-%06d", i))
		}
		claims := set.CoreV1().PersistentVolumeClaims("default")
		for _, name := range names {
			_, err := claims.Create(r.t.Context(), bindingtest.Claim("default", name, "1Gi", func(claim *corev1.PersistentVolumeClaim) {
				claim.Spec.StorageClassName = new("ours")
			}), metav1.CreateOptions{})
			require.NoError(r.t, err)
		}
		r.eventually(func() bool { return r.bound(names...) }, "all are bound")
		for _, name := range names {
			require.NoError(r.t, claims.Delete(r.t.Context(), name, metav1.DeleteOptions{}))
		}
		r.eventually(r.empty, "all are gone")
		r.Forget()
	}
}

// empty reports whether there is neither a claim nor a volume.
func (r *running) empty() bool {
	volumes, err := r.Server.Server.List(r.t.Context(), obj.KindVolume, "")
	require.NoError(r.t, err)
	claims, err := r.Server.Server.List(r.t.Context(), obj.KindClaim, "")
	require.NoError(r.t, err)
	return len(volumes)+len(claims) == 0
}

// nobody is told of events.
type nobody struct{}

func (nobody) Record(decision.Event) {}

// churned is storage for which every fiftieth call fails.
type churned struct{ calls atomic.Int32 }

func (s *churned) fails() error {
	if s.calls.Add(1)%50 == 0 {
		return errors.New("not now")
	}
	return nil
}

func (s *churned) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt/" + request.Volume.Name}
	return request.Volume, s.fails()
}

func (s *churned) Delete(context.Context, hooks.ReclaimRequest) error { return s.fails() }
