package main

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/program"
)

// soon makes leader elections quick.
func soon() []string {
	return []string{"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=50ms"}
}

func holder(server *apitest.Server) string {
	lease := server.Lease("kube-system", "pvbinder")
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return "nobody ever"
	}
	return *lease.Spec.HolderIdentity
}

func TestBindsUntilTerminated(t *testing.T) {
	server := newServer(t, pair("data", "5Gi")...)
	p := launch(t, server)
	eventually(t, bound(server, "data"), "the claim is bound")
	eventually(t, p.says(working), "it is ready")
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		code, _ := p.get(path)
		assert.Equal(t, http.StatusOK, code, path)
	}
	_, metrics := p.get("/metrics")
	assert.Contains(t, metrics, "pvbind_bind_seconds_count 1\n")
	assert.Contains(t, metrics, `pvbind_requests_total{outcome="ok",resource="persistentvolumes",verb="update"} 1`)
	assert.Contains(t, metrics, "go_goroutines ")
	assert.NotEmpty(t, holder(server))

	p.signal(syscall.SIGTERM)
	assert.Equal(t, program.ExitOK, p.exit())
	assert.Empty(t, holder(server), "the lease is given back")
}

func TestStandbyTakesOver(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"from one that is terminated": syscall.SIGTERM, "from one that is killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t, pair("first", "1Gi")...)
			leader := launch(t, server, soon()...)
			eventually(t, bound(server, "first"), "the leader works")
			next := launch(t, server, soon()...)
			eventually(t, next.says(standby), "the other one stands by")
			leader.signal(signal)
			leader.exit()
			create(t, server, pair("second", "2Gi")...)
			eventually(t, bound(server, "second"), "the other one works")
			next.signal(syscall.SIGTERM)
			assert.Equal(t, program.ExitOK, next.exit())
		})
	}
}

func TestStandbyIsTerminated(t *testing.T) {
	server := newServer(t)
	leader := launch(t, server, soon()...)
	eventually(t, leader.says(working), "the leader works")
	next := launch(t, server, soon()...)
	eventually(t, next.says(standby), "the other one stands by")
	next.signal(syscall.SIGTERM)
	assert.Equal(t, program.ExitOK, next.exit())
	assert.NotEmpty(t, holder(server), "the leader keeps its lease")
}

func TestLostLease(t *testing.T) {
	server := newServer(t)
	p := launch(t, server, soon()...)
	eventually(t, p.says(working), "it works")
	server.Deny(func(request apitest.Request) bool { return request.Resource == "leases" })
	assert.Equal(t, program.ExitFailed, p.exit())
	assert.Equal(t, errLostLease.Error(), p.log.Find("pvbinder ends", "error"))
}

func TestProtection(t *testing.T) {
	for flag, gone := range map[string]bool{"--protection": true, "--protection=false": false} {
		server := newServer(t, pair("data", "5Gi")...)
		p := launch(t, server, flag, "--leader-elect=false")
		eventually(t, bound(server, "data"), "the claim is bound")
		require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
		create(t, server, pair("later", "1Gi")...)
		eventually(t, bound(server, "later"), "by now the deletion has been seen")
		if gone {
			eventually(t, func() bool { return server.Claim("default", "data") == nil }, "F2 the claim goes")
		}
		p.signal(syscall.SIGTERM)
		assert.Equal(t, program.ExitOK, p.exit())
		assert.Equal(t, gone, server.Claim("default", "data") == nil, flag)
	}
}

func TestPodsUnwatched(t *testing.T) {
	server := newServer(t, pair("data", "5Gi")...)
	server.Deny(func(request apitest.Request) bool { return request.Resource == "pods" })
	launch(t, server, "--watch-pods=false", "--protection=false", "--resync=0")
	eventually(t, bound(server, "data"), "the claim is bound without any right to pods")
	for _, call := range server.Calls() {
		assert.False(t, call.Verb == bindingtest.VerbList && call.Key.Kind == obj.KindPod)
	}
}
