package clientgo_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
)

// counted is what a counter or histogram has counted with these labels, or with any.
func counted(t *testing.T, registry prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			has := map[string]bool{}
			for _, label := range metric.GetLabel() {
				has[label.GetName()+"="+label.GetValue()] = true
			}
			for _, label := range labels {
				if !has[label] {
					metric = nil
					break
				}
			}
			if family.GetName() == name && metric != nil {
				sum += metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestMetrics(t *testing.T) {
	server := newPair(t)
	server.Client.Use(bindingtest.Conflict(1, bindingtest.AnyWrite))
	registry := prometheus.NewRegistry()
	r := start(t, server, func(r *clientgo.Runner) { r.Registerer = registry })
	r.eventually(func() bool { return counted(t, registry, "pvbind_bind_seconds") == 1 }, "one claim was bound")
	for want, labels := range map[float64][]string{
		1: {"outcome=conflict"},
		2: {"verb=update", "outcome=ok"},
	} {
		assert.Equal(t, want, counted(t, registry, "pvbind_requests_total", labels...), "%v", labels)
	}
	assert.EqualValues(t, 2, counted(t, registry, "pvbind_requests_total", "verb=update_status", "outcome=ok"))
	assert.EqualValues(t, 1, counted(t, registry, "pvbind_requests_total", "verb=get", "resource=persistentvolumes"), "B6 a conflict costs one read")
	r.eventually(func() bool {
		return counted(t, registry, "pvbind_syncs_total", "kind=PersistentVolumeClaim", "outcome=ok") > 0
	}, "the sync that bound it is counted, when it is over")

	other := clientgo.Runner{Clientset: r.runner.Clientset, Registerer: registry}
	require.ErrorContains(t, other.Run(t.Context()), "clientgo.Runner.Registerer: duplicate metrics collector", "one registry, one runner")
	require.NoError(t, r.stop())
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families, "a stopped runner leaves nothing behind")
}
