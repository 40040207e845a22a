package clientgo

import (
	"fmt"
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
	require.ErrorContains(t, read("11", nothing), "the list of pods/default has resourceVersion 11, and 12 was seen before")
	require.NoError(t, read("11", nothing), "that is told once")

	require.NoError(t, read("20", nothing))
	lists.Reached("21")
	require.Error(t, read("6", func() { require.Error(t, read("5", nothing)) }), "so does one that was on its way when the server went back")
	assert.Equal(t, seen{listed: "6", known: "6", apart: true, disputed: "20"}, lists.seenOf(key.Kind), "the newest of those after it went back")
	require.NoError(t, read("7", nothing))
	require.NoError(t, read("abc", nothing), "versions that cannot be compared prove nothing")
	require.ErrorContains(t, read("", nothing), "the reply is no list")
	require.Error(t, read("6", nothing))

	require.NoError(t, (*Lists)(nil).Read(key, func() (metav1.ListInterface, error) { return &metav1.ListMeta{ResourceVersion: "1"}, nil }))
}

// V3: claims and volumes have the resourceVersions of one etcd, and as a rule pods and attachments too.
func TestV3AListFromBeforeWhatIsKnownIsAnError(t *testing.T) {
	for _, key := range []obj.Key{obj.ClaimsKey(), obj.PodsKey("default"), obj.AttachmentsKey()} {
		var lists Lists
		reads := func(version string) error {
			return lists.Read(key, func() (metav1.ListInterface, error) { return &metav1.ListMeta{ResourceVersion: version}, nil })
		}
		lists.Reached("8")
		lists.Reached("7")
		require.ErrorContains(t, reads("6"), "has resourceVersion 6, and 8 was seen before")
		require.NoError(t, reads("6"), "the server may have been restored")
		require.NoError(t, reads("8"), "which it was not")
		lists.Reached("10")
		require.ErrorContains(t, reads("9"), "and 10 was seen before")
		require.ErrorContains(t, reads("11"), "one of the two is from the past")
		require.NoError(t, reads("11"))
		require.NoError(t, lists.Read(key, func() (metav1.ListInterface, error) {
			lists.Reached("13")
			return &metav1.ListMeta{ResourceVersion: "12"}, nil
		}), "it was requested before 13 was known")
		lists.Reached("1000")
		require.NoError(t, reads("1000"))
		require.Error(t, reads("100"), "the server was restored")
		require.ErrorContains(t, reads("1000"), "one of the two is from the past", "an old reply after a true one")
		require.ErrorContains(t, reads("101"), "and 1000 was seen before")
		require.NoError(t, reads("102"))
		lists.Reached("103")
		require.NoError(t, reads("103"))
		lists.Reached("105")
		require.ErrorContains(t, reads("104"), "and 105 was seen before", "what is known since counts again")
	}
	t.Run("one that has pods in an etcd of their own goes on", func(t *testing.T) {
		var lists Lists
		refused := 0
		for i := range 100 {
			lists.Reached(fmt.Sprint(1000 + i/3)) // or none that is later
			if lists.Read(obj.PodsKey("default"), func() (metav1.ListInterface, error) {
				return &metav1.ListMeta{ResourceVersion: fmt.Sprint(10 + i)}, nil
			}) != nil {
				refused++
			}
		}
		assert.Equal(t, 1, refused)
		require.ErrorContains(t, lists.Read(obj.PodsKey("default"), func() (metav1.ListInterface, error) {
			return &metav1.ListMeta{ResourceVersion: "50"}, nil
		}), "has resourceVersion 50, and 109 was seen before", "they are compared with one another")
	})
	(*Lists)(nil).Reached("1")
}
