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
			c.Create(c.Class("local"))
			for n := range nodes {
				c.Create(c.Node(fmt.Sprintf("n%d", n)))
				for d := range disksPerNode {
					c.Create(c.Disk(fmt.Sprintf("d%d-%d", n, d), "10Gi", fmt.Sprintf("n%d", n)))
				}
			}
			startScheduler(t, address, nodeCacheCapable)
			for p := range pods {
				c.Create(c.Claim(fmt.Sprintf("data-%d", p), "5Gi", "local"), c.Pod(fmt.Sprintf("web-%d", p), fmt.Sprintf("data-%d", p)))
			}
			taken := map[string]bool{}
			for p := range pods {
				node := c.Scheduled(fmt.Sprintf("web-%d", p))
				claim := c.StoredClaim(fmt.Sprintf("data-%d", p))
				assert.Equal(t, corev1.ClaimBound, claim.Status.Phase, "S8 the claim is bound before the pod")
				assert.Contains(t, claim.Spec.VolumeName, c.Of("d"+node[1:]+"-"), "the volume is on the node")
				taken[claim.Spec.VolumeName] = true
			}
			assert.Len(t, taken, pods, "X1 each has one of its own")

			c.Create(c.Claim("late", "5Gi", "local"), c.Pod("late", "late"))
			c.PendingFor("late", "0/20 nodes are available: 20 node(s) didn't find available persistent volumes to bind")
			c.Create(c.Disk("new", "5Gi", "n7"))
			assert.Equal(t, "n7", c.Scheduled("late"), "a volume that comes makes the pod schedulable")
		})
	}
}

// S6: one volume is for either claim, the other for one of them only. The scheduler's own plugin gives the wrong one
// away first, and leaves the pod pending.
func TestTwoClaimsThatTheOwnPluginFails(t *testing.T) {
	c := newCluster(t, "two")
	many := func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadWriteMany)
	}
	c.Create(c.Class("local"), c.Node("n1"), c.Disk("p1", "1Gi", "n1", many), c.Disk("p2", "2Gi", "n1"), c.Claim("a", "1Gi", "local"),
		c.Claim("b", "1Gi", "local", func(b *corev1.PersistentVolumeClaim) { b.Spec.AccessModes[0] = corev1.ReadWriteMany }))
	own := startScheduler(t, "", false)
	c.Create(c.Pod("web", "a", "b"))
	c.PendingFor("web", "didn't find available persistent volumes to bind") // the scheduler as it comes
	own.Kill()

	_, address := startExtender(t)
	startScheduler(t, address, true)
	assert.Equal(t, "n1", c.Scheduled("web"), "the scheduler with the extender")
	assert.Equal(t, c.Of("p2"), c.StoredClaim("a").Spec.VolumeName)
	assert.Equal(t, c.Of("p1"), c.StoredClaim("b").Spec.VolumeName)
}
