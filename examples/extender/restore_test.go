package extender_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// After a restore the server has older versions of volumes and claims, and they count: what was written since the backup is
// free again, what was deleted is there again, and what was created is gone. The extender goes on without a restart.
func TestW8TheServerIsRestored(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), disk("d2", "10Gi", "n2"), claim("a", "5Gi", local), claim("b", "5Gi", local), pod("one", "a"), pod("two", "b"))
	c.binder()
	c.fits(pod("two", "b"), "n1", "n2")
	snapshot := c.Snapshot()
	assert.Empty(t, c.bind(pod("one", "a"), "n1"))
	require.NoError(t, c.Server.Delete(t.Context(), obj.VolumeKey("d2"), metav1.DeleteOptions{}))
	c.eventually(func() bool { return c.Volume("d2") == nil }, "the binder takes off what keeps volume d2")
	c.create(disk("d3", "10Gi", "n3"))
	c.fits(pod("two", "b"), "n3")

	c.Restore(snapshot)
	c.fits(pod("two", "b"), "n2") // d1 is kept for claim a, which had it
	assert.Empty(t, c.bind(pod("one", "a"), "n1"), "work goes on: the pod that the backup does not have as bound is bound again")
	c.fits(pod("two", "b"), "n2")
}
