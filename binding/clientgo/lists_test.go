package clientgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// Lists that are requested side by side may come in another order than the server has made them.
func TestListsSideBySide(t *testing.T) {
	var lists Lists
	key := obj.PodsKey("default")
	read := func(version string, during func()) error {
		return lists.Read(key, func() (metav1.ListInterface, error) {
			during()
			return &metav1.ListMeta{ResourceVersion: version}, nil
		})
	}
	nothing := func() {}
	require.NoError(t, read("10", nothing))
	require.NoError(t, read("11", func() { require.NoError(t, read("12", nothing)) }), "it was requested before 12 was seen")
	require.ErrorContains(t, read("11", nothing), "the list of pods/default has resourceVersion 11, and 12 was read before")
	require.NoError(t, read("11", nothing), "that is told once")

	lists.Reached(key.Kind, "20")
	require.Error(t, read("6", func() { require.Error(t, read("5", nothing)) }), "so does one that was on its way when the server went back")
	assert.Equal(t, "6", lists.newestOf(key.Kind), "the newest of those after it went back")
	require.NoError(t, read("7", nothing))
	require.NoError(t, read("abc", nothing), "versions that cannot be compared prove nothing")
	require.ErrorContains(t, read("", nothing), "the reply is no list")
	require.Error(t, read("6", nothing))

	require.NoError(t, (*Lists)(nil).Read(key, func() (metav1.ListInterface, error) { return &metav1.ListMeta{ResourceVersion: "1"}, nil }))
}
