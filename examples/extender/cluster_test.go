package extender

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/decision"
)

func diskAt(version string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid", ResourceVersion: version}}
}

// What replies have shown, and no informer yet, is forgotten when the server goes back, and a reply that comes later than that
// notice is not believed.
func TestW8RepliesOfAServerThatWentBack(t *testing.T) {
	c := newCluster()
	c.volumeStore, c.claimStore = cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
	is := func(version, why string) {
		t.Helper()
		volume, source := c.Volume("disk")
		require.Equal(t, decision.FromCache, source)
		assert.Equal(t, version, volume.ResourceVersion, why)
	}
	informed := func(version string) {
		t.Helper()
		require.NoError(t, c.volumeStore.Add(diskAt(version)))
		c.observe(diskAt(version))
	}
	informed("90")
	before := c.era()
	c.wrote(diskAt("100"), before)
	informed("95")
	is("100", "X5 a reply counts at once")
	c.serverWentBack("PersistentVolume", errors.New("the server has 80"))
	is("95", "the write is lost")
	c.wrote(diskAt("101"), before)
	is("95", "so is this one, whose reply came late")
	c.replace(diskAt("95"), diskAt("80"))
	is("80", "what the informer lists anew counts, older though it is")
	c.wrote(diskAt("81"), c.era())
	is("81", "work goes on")
	require.NoError(t, c.volumeStore.Delete(diskAt("80")))
	c.serverWentBack("PersistentVolume", errors.New("the server has 70"))
	_, source := c.Volume("disk")
	assert.Equal(t, decision.NotInCache, source, "what no informer has is not there")
}
