package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

func TestAPodIsMarkedBeforeItGoes(t *testing.T) {
	server := bindingtest.NewServer()
	must.Create(t, server, bindingtest.Pod("default", "web", "n1"))
	watch := server.Watch(bindingtest.KindPod)
	require.NoError(t, server.FinishPod(t.Context(), "default", "web"))
	watch.Next()
	change, _ := watch.Next()
	assert.Equal(t, bindingtest.Modified, change.Type, "F2 a pod that is shut down can be seen")
	assert.Zero(t, *change.Object.GetDeletionGracePeriodSeconds())
	change, _ = watch.Next()
	assert.Equal(t, bindingtest.Deleted, change.Type)
	assert.NotNil(t, change.Object.GetDeletionTimestamp())
}

func TestAPodIsScheduledByAnUpdate(t *testing.T) {
	server := bindingtest.NewServer()
	pod := must.Create(t, server, bindingtest.Pod("default", "web", "", "data"))
	pod = must.Update(t, server, pod, func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	assert.Equal(t, "n1", pod.Spec.NodeName)
}
