package schedulerplugin_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

const nothingToBind = "node(s) didn't find available persistent volumes to bind"

// S7: what is reserved for one pod no other gets, until it is given up. Nothing is written.
func TestReserveWritesNothing(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), claim("logs", "local"), disk("d1", "10Gi", "n1"))
	first, second := pod("first", "data"), pod("second", "logs")
	before := s.writes()
	simulated, state := s.plan(first), s.plan(second)
	for range 2 { // the pod-group cycle simulates, and then reserves with the same state
		s.reserve(simulated, first, "n1")
		assert.Equal(t, map[string]string{"n1": nothingToBind, "n2": nothingToBind}, s.filter(s.plan(second), second))
		s.reserve(simulated, first, "n1")
		s.Unreserve(t.Context(), simulated, first, "n1")
		s.Unreserve(t.Context(), simulated, first, "n1")
		assert.Equal(t, map[string]string{"n2": nothingToBind}, s.filter(s.plan(second), second))
	}
	s.reserve(simulated, first, "n1")
	status := s.Reserve(t.Context(), state, second, "n1")
	assert.Equal(t, framework.Error, status.Code(), "to be tried again, though nothing may change")
	assert.Equal(t, "the volumes planned for the pod were taken, and there are no others for it on the node", status.Message())
	s.Unreserve(t.Context(), state, second, "n1")
	assert.True(t, s.Reserve(t.Context(), s.plan(second), second, "n7").IsError(), "a node that was never looked at")
	assert.Equal(t, before, s.writes())
}

// S8: a plan that was overtaken is made anew for the node.
func TestReservePlansAnew(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), claim("logs", "local"), claim("more", "local"), disk("d1", "10Gi", "n1"), disk("d2", "20Gi", "n1"))
	first, second, third := pod("first", "data"), pod("second", "logs"), pod("third", "more")
	one, other := s.plan(first), s.plan(second)
	s.reserve(one, first, "n1")
	s.reserve(other, second, "n1")
	assert.Equal(t, map[string]string{"n1": nothingToBind, "n2": nothingToBind}, s.filter(s.plan(third), third))
}

// bind has claims be bound as in a cluster, until the test ends.
func (s *scheduler) bind() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&clientgo.Runner{Clientset: s.set, Logger: slog.New(slog.DiscardHandler)}).Run(ctx) }()
	s.Cleanup(func() { cancel(); assert.NoError(s, <-ended) })
}

// S8: PreBind makes the writes and waits. A pod whose claims are bound has nothing to wait for.
func TestPreBind(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), disk("d1", "10Gi", "n1"), pod("web", "data"))
	s.bind()
	web := s.pod("web")
	state := s.plan(web)
	require.Equal(t, map[string]string{"n2": nothingToBind}, s.filter(state, web))
	assert.True(t, s.PreScore(t.Context(), state, web, infosOf(s.nodes[0])).IsSkip(), "no shape")
	s.reserve(state, web, "n1")
	result, status := s.PreBindPreFlight(t.Context(), state, web, "n1")
	assert.True(t, status.IsSuccess())
	assert.True(t, result.AllowParallel)
	require.NoError(t, s.PreBind(t.Context(), state, web, "n1").AsError())
	assert.Equal(t, "d1", s.Claim("default", "data").Spec.VolumeName)
	s.Unreserve(t.Context(), state, web, "n1")

	again := s.plan(web)
	assert.Equal(t, map[string]string{"n2": "node(s) didn't match PersistentVolume's node affinity"}, s.filter(again, web), "S3 it stays where its volume is")
	s.reserve(again, web, "n1")
	result, status = s.PreBindPreFlight(t.Context(), again, web, "n1")
	assert.True(t, status.IsSkip())
	assert.True(t, result.AllowParallel)
	assert.Nil(t, s.PreBind(t.Context(), again, web, "n1"))
}

// S8: the errors of PreBind say that the scheduler is to try again after the back-off, whatever has failed.
func TestPreBindFails(t *testing.T) {
	onVolume := bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
	const waits = "waiting for pvc/default/data to be bound to d1: context deadline exceeded"
	for name, c := range map[string]struct {
		fault bindingtest.Hook
		want  string
	}{
		"S8 nobody binds":          {bindingtest.Before(1, onVolume, func() {}), waits},
		"S8 a conflict":            {bindingtest.Conflict(1, onVolume), waits},
		"S8 the write is rejected": {bindingtest.Fail(1, onVolume, assert.AnError), assert.AnError.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s := schedulerOn(t, &configv1.VolumeBindingArgs{BindTimeoutSeconds: new(int64)}, claim("data", "local"), disk("d1", "10Gi", "n1"), pod("web", "data"))
			web := s.pod("web")
			state := s.plan(web)
			s.reserve(state, web, "n1")
			s.Client.Use(c.fault)
			status := s.PreBind(t.Context(), state, web, "n1")
			assert.Equal(t, framework.Error, status.Code())
			assert.Contains(t, status.Message(), c.want)
			s.Unreserve(t.Context(), state, web, "n1")
		})
	}
}

// S8: a pod that is deleted while it is bound does not go on until the timeout.
func TestPreBindOfAPodThatIsGone(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "made"), pod("web", "data"))
	web := s.pod("web")
	state := s.plan(web)
	s.reserve(state, web, "n2")
	status := make(chan *framework.Status, 1)
	go func() { status <- s.PreBind(t.Context(), state, web, "n2") }()
	s.eventually(func() bool {
		return s.Claim("default", "data").Annotations["volume.kubernetes.io/selected-node"] == "n2"
	}, "a volume is requested for the node")
	require.NoError(t, s.Server.Delete(t.Context(), bindingtest.PodKey("default", "web"), metav1.DeleteOptions{}))
	assert.Equal(t, "the pod does not exist any more", (<-status).Message())
}
