package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/leaderelection"
)

// status is the state of pvbinder.
type status string

const (
	starting status = "starting"
	standby  status = "waiting for the lease"
	filling  status = "filling its caches"
	working  status = "working"
	stopping status = "stopping"
)

// health serves whether pvbinder is alive and ready.
type health struct {
	lease *leaderelection.HealthzAdaptor
	now   atomic.Value // status
}

// leaseGrace is how long after the end of its lease a leader may still be stepping down.
const leaseGrace = 20 * time.Second

func newHealth() *health {
	h := &health{lease: leaderelection.NewLeaderHealthzAdaptor(leaseGrace)}
	h.is(starting)
	return h
}

func (h *health) is(now status) { h.now.Store(now) }

// alive fails if pvbinder goes on working after its lease has ended. Then it should be restarted.
func (h *health) alive(w http.ResponseWriter, r *http.Request) {
	if err := h.lease.Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "ok")
}

// ready succeeds for the leader and for a standby.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	now := h.now.Load().(status)
	if now != working && now != standby {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, now)
}

func (h *health) handler(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.alive)
	mux.HandleFunc("GET /livez", h.alive)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}
