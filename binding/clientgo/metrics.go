package clientgo

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
)

// metrics are what a Runner counts.
type metrics struct {
	syncs    *prometheus.CounterVec
	requests *prometheus.CounterVec
	queue    prometheus.GaugeFunc
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
		binding: newBindTimes(),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.syncs, m.requests, m.queue, m.binding.took}
}

// register registers all or none.
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

// outcomeOf sorts the answers to requests. Of a write whose outcome is unknown, nobody can tell whether it took effect.
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
