package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Local volumes on many nodes: each pod goes where its volume is, and no volume goes to two.
func TestLocalVolumesOnManyNodes(t *testing.T) {
	for _, nodeCacheCapable := range []bool{true, false} {
		t.Run(fmt.Sprintf("nodeCacheCapable %t", nodeCacheCapable), func(t *testing.T) {
			const nodes, disksPerNode, pods = 20, 3, 60
			c := newCluster(t, fmt.Sprintf("local-%t", nodeCacheCapable))
			_, address := startExtender(t)
			c.class("local")
			for n := range nodes {
				c.node(fmt.Sprintf("n%d", n))
				for d := range disksPerNode {
					c.disk(fmt.Sprintf("d%d-%d", n, d), "10Gi", fmt.Sprintf("n%d", n))
				}
			}
			startScheduler(t, address, nodeCacheCapable)
			for p := range pods {
				c.claim(fmt.Sprintf("data-%d", p), "5Gi", "local")
				c.pod(fmt.Sprintf("web-%d", p), fmt.Sprintf("data-%d", p))
			}
			taken := map[string]bool{}
			for p := range pods {
				node := c.scheduled(fmt.Sprintf("web-%d", p))
				claim := c.stored(fmt.Sprintf("data-%d", p))
				assert.Equal(t, corev1.ClaimBound, claim.Status.Phase, "S8 the claim is bound before the pod")
				assert.Contains(t, claim.Spec.VolumeName, c.of("d"+node[1:]+"-"), "the volume is on the node")
				taken[claim.Spec.VolumeName] = true
			}
			assert.Len(t, taken, pods, "X1 each has one of its own")

			c.claim("late", "5Gi", "local")
			c.pod("late", "late")
			assert.Contains(t, c.unschedulable("late"), "0/20 nodes are available: 20 node(s) didn't find available persistent volumes to bind")
			c.disk("new", "5Gi", "n7")
			assert.Equal(t, "n7", c.scheduled("late"), "a volume that comes makes the pod schedulable")
		})
	}
}

// S6: one volume is for either claim, the other for one of them only. The scheduler's own plugin gives the wrong one
// away first, and leaves the pod pending.
func TestTwoClaimsThatTheOwnPluginFails(t *testing.T) {
	const rwo, rwx = corev1.ReadWriteOnce, corev1.ReadWriteMany
	c := newCluster(t, "two")
	c.class("local")
	c.node("n1")
	c.disk("p1", "1Gi", "n1", rwo, rwx)
	c.disk("p2", "2Gi", "n1", rwo)
	c.claim("a", "1Gi", "local", rwo)
	c.claim("b", "1Gi", "local", rwx)
	own := startScheduler(t, "", false)
	c.pod("web", "a", "b")
	assert.Contains(t, c.unschedulable("web"), "didn't find available persistent volumes to bind", "the scheduler as it comes")
	own.Kill()

	_, address := startExtender(t)
	startScheduler(t, address, true)
	assert.Equal(t, "n1", c.scheduled("web"), "the scheduler with the extender")
	assert.Equal(t, c.of("p2"), c.stored("a").Spec.VolumeName)
	assert.Equal(t, c.of("p1"), c.stored("b").Spec.VolumeName)
}
