package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// A list of pods is the newest, however often it was asked for, and on a copy of the server too.
func TestPodsAreListedAsTheyAre(t *testing.T) {
	server := bindingtest.NewServer()
	names := func(of *bindingtest.Server, namespace string) (names []string) {
		pods, err := of.ListPods(t.Context(), namespace)
		require.NoError(t, err)
		for _, pod := range pods {
			names = append(names, pod.Name+" "+pod.Spec.NodeName)
		}
		return names
	}
	create := func(of *bindingtest.Server, namespace, name string) {
		_, err := of.Create(t.Context(), bindingtest.Pod(namespace, name, ""))
		require.NoError(t, err)
	}
	assert.Empty(t, names(server, "shop"))
	create(server, "shop", "b")
	create(server, "shop", "a")
	create(server, "bank", "c")
	assert.Equal(t, []string{"a ", "b "}, names(server, "shop"))
	assert.Equal(t, []string{"c ", "a ", "b "}, names(server, ""))

	clone := server.Clone()
	create(clone, "shop", "d")
	assert.Equal(t, []string{"a ", "b ", "d "}, names(clone, "shop"))
	assert.Equal(t, []string{"a ", "b "}, names(server, "shop"))

	_, err := server.Update(t.Context(), bindingtest.Pod("shop", "a", "node-1"))
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), bindingtest.PodKey("shop", "b"), metav1.DeleteOptions{}))
	assert.Equal(t, []string{"a node-1"}, names(server, "shop"))
	require.NoError(t, server.Load(bindingtest.Pod("shop", "e", "")))
	assert.Equal(t, []string{"a node-1", "e "}, names(server, "shop"))
}
