package clientgo

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// metrics are those of a Runner.
type metrics struct {
	syncs    *prometheus.CounterVec
	requests *prometheus.CounterVec
	queue    prometheus.GaugeFunc
	wentBack prometheus.Counter
	binding  bindTimes
}

func newMetrics(queueLength func() int) *metrics {
	return &metrics{
		syncs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pvbind_syncs_total",
			Help: "Syncs of claims and volumes, by kind and outcome (ok, error, invalid).",
		}, []string{"kind", "outcome"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pvbind_requests_total",
			Help: "Requests to the API server, by verb, resource and outcome (ok, conflict, not_found, refused, unknown).",
		}, []string{"verb", "resource", "outcome"}),
		queue: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pvbind_queue_length",
			Help: "Claims and volumes that wait for a worker.",
		}, func() float64 { return float64(queueLength()) }),
		wentBack: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pvbind_server_went_back_total",
			Help: "How often the API server went back in time, as after a restore of etcd from a backup.",
		}),
		binding: newBindTimes(),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.syncs, m.requests, m.queue, m.wentBack, m.binding.took}
}

// register registers all of them or none.
func (m *metrics) register(registerer prometheus.Registerer) error {
	for i, collector := range m.collectors() {
		if err := registerer.Register(collector); err != nil {
			for _, registered := range m.collectors()[:i] {
				registerer.Unregister(registered)
			}
			return err
		}
	}
	return nil
}

func (m *metrics) unregister(registerer prometheus.Registerer) {
	for _, collector := range m.collectors() {
		registerer.Unregister(collector)
	}
}

func (m *metrics) synced(key obj.Key, err error) {
	outcome := "ok"
	if invalid := (*obj.InvalidError)(nil); errors.As(err, &invalid) {
		outcome = "invalid"
	} else if err != nil {
		outcome = "error"
	}
	m.syncs.WithLabelValues(string(key.Kind), outcome).Inc()
}

func (m *metrics) called(verb, resource string, err error) {
	m.requests.WithLabelValues(verb, resource, outcomeOf(err)).Inc()
}

// outcomeOf classifies the answer to a request. A write whose outcome is unknown may have taken effect.
func outcomeOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "ok"
	case apierrors.IsConflict(err):
		return "conflict"
	case apierrors.IsNotFound(err):
		return "not_found"
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500:
		return "refused"
	}
	return "unknown"
}

// bindTimes measures how long claims take to become Bound, from the time they are first seen unbound.
type bindTimes struct {
	took prometheus.Histogram

	mu   sync.Mutex
	seen map[types.UID]time.Time // the claims that are not Bound
}

func newBindTimes() bindTimes {
	return bindTimes{
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pvbind_bind_seconds",
			Help:    "Time from when a claim was first seen unbound until it was seen Bound. The count is that of binds.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 16), // to 5 minutes
		}),
		seen: map[types.UID]time.Time{},
	}
}

func (b *bindTimes) observe(object obj.Object) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since, waits := b.seen[claim.UID]
	switch bound := claim.Status.Phase == corev1.ClaimBound; {
	case bound && waits:
		b.took.Observe(time.Since(since).Seconds())
		delete(b.seen, claim.UID)
	case !bound && !waits:
		b.seen[claim.UID] = time.Now()
	}
}

func (b *bindTimes) forget(object obj.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, object.GetUID())
}
