package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/pvbind/pvbind/examples/cluster/clustertest"
)

// cluster is a world of the scheduler that has the extender.
type cluster struct{ *clustertest.World }

func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{clustertest.NewWorld(t, client, name, corev1.DefaultSchedulerName)}
	t.Cleanup(c.End)
	return c
}

// nodeOf is the node that the pod was bound to, without the cluster's name; "" if none.
func (c *cluster) nodeOf(pod string) string {
	return strings.TrimPrefix(c.StoredPod(pod).Spec.NodeName, c.Of(""))
}

// change changes a claim as somebody else would.
func (c *cluster) change(claim string, change func(*corev1.PersistentVolumeClaim)) {
	c.Helper()
	require.NoError(c, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		stored := c.StoredClaim(claim)
		change(stored)
		_, err := client.CoreV1().PersistentVolumeClaims(c.Namespace).Update(context.Background(), stored, metav1.UpdateOptions{})
		return err
	}))
}
