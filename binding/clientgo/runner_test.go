package clientgo_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

var deleteNow = metav1.DeleteOptions{}

func newPair(t *testing.T) *apitest.Server {
	t.Helper()
	return newServer(t, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
}

func TestRunnerBindsManyClaims(t *testing.T) {
	const pairs = 60
	server := newServer(t)
	var names []string
	for i := range pairs {
		names = append(names, fmt.Sprintf("data-%d", i))
		for _, object := range []obj.Object{bindingtest.Volume(fmt.Sprintf("disk-%d", i), "10Gi"), bindingtest.Claim("default", names[i], "5Gi")} {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	r := start(t, server)
	r.eventually(func() bool { return r.bound(names...) }, "all claims are bound")
	require.NoError(t, r.stop())

	volumes := map[string]bool{}
	for _, name := range names {
		volumes[r.Claim("default", name).Spec.VolumeName] = true
	}
	assert.Len(t, volumes, pairs, "X1 one to one")
	assert.Equal(t, 4*pairs, r.calls(bindingtest.VerbUpdate), "B6 four writes a claim, and no Available first")
	assert.Zero(t, r.calls(bindingtest.VerbGet), "B6 no read")
	for _, call := range r.Calls() {
		require.NoError(t, call.Err, "B6 no conflict with itself: %s", call.Key)
	}
}

func TestRunnerBindsWhatComesLater(t *testing.T) {
	server := newServer(t)
	synced := make(chan struct{})
	r := start(t, server, func(r *clientgo.Runner) { r.Synced = func() { close(synced) } })
	<-synced
	for i := range 5 {
		for _, object := range []obj.Object{
			bindingtest.Claim("default", fmt.Sprintf("data-%d", i), "5Gi"), bindingtest.Volume(fmt.Sprintf("disk-%d", i), "10Gi"),
		} {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	r.eventually(func() bool { return r.bound("data-0", "data-1", "data-2", "data-3", "data-4") }, "all claims are bound")
}

func TestRunnerSurvivesFaults(t *testing.T) {
	for name, fault := range map[string]func(int) bindingtest.Hook{
		"Conflict":    func(n int) bindingtest.Hook { return bindingtest.Conflict(n, bindingtest.AnyWrite) },
		"answer lost": func(n int) bindingtest.Hook { return bindingtest.LoseAnswer(n, bindingtest.AnyWrite) },
	} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("B6 %s at write %d", name, n), func(t *testing.T) {
				t.Parallel()
				server := newPair(t)
				server.Client.Use(fault(n))
				before := len(server.Calls())
				r := start(t, server)
				r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
				require.NoError(t, r.stop())
				changed := 0
				for _, call := range r.CallsSince(before) {
					if call.Writes() && call.Changed() {
						changed++
					}
				}
				assert.Equal(t, 4, changed, "nothing is written twice")
			})
		}
	}
}

func TestRunnerKeepsWhatIsInUse(t *testing.T) {
	server := newServer(t, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"), bindingtest.Pod("default", "web", "node", "data"))
	r := start(t, server, func(r *clientgo.Runner) { r.Options.Protection = decision.ProtectionOn })
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	for _, later := range []obj.Object{bindingtest.Volume("later", "1Gi"), bindingtest.Claim("default", "later", "1Gi")} {
		_, err := server.Create(t.Context(), later)
		require.NoError(t, err)
	}
	r.eventually(func() bool { return r.bound("later") }, "by now the deletion has been seen")
	require.NotNil(t, r.Claim("default", "data"), "F2 the pod uses it")
	require.NoError(t, server.Delete(t.Context(), bindingtest.PodKey("default", "web"), deleteNow))
	r.eventually(func() bool { return r.Claim("default", "data") == nil }, "F2 nobody uses it any more")
	assert.Positive(t, r.calls(bindingtest.VerbList, obj.KindPod), "F2 the pods were read live")
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 the volume is released")
}
