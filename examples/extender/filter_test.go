package extender_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
)

const (
	noVolume   = "node(s) didn't find available persistent volumes to bind"
	elsewhere  = "node(s) didn't match PersistentVolume's node affinity"
	noStorage  = "node(s) did not have enough free storage"
	volumeless = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

// annotated is a claim whose tenant wrote that it has the volume. bound is one that is Bound to it.
func annotated(c *corev1.PersistentVolumeClaim, volume string) *corev1.PersistentVolumeClaim {
	c.Spec.VolumeName = volume
	c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	return c
}

func bound(c *corev1.PersistentVolumeClaim, volume string) *corev1.PersistentVolumeClaim {
	c.Status.Phase = corev1.ClaimBound
	return annotated(c, volume)
}

func TestFilter(t *testing.T) {
	modes := func(modes ...corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode { return modes }
	rwo, rwx := modes(corev1.ReadWriteOnce), modes(corev1.ReadWriteMany)
	for name, c := range map[string]struct {
		objects []obj.Object
		claims  []string
		fits    []string
		fails   schedulerv1.FailedNodesMap
	}{
		"no claims": {fits: []string{"n1", "n2"}},
		"S4 a volume on one node": {
			objects: []obj.Object{disk("d1", "10Gi", "n1"), claim("data", "5Gi", local)},
			claims:  []string{"data"}, fits: []string{"n1"}, fails: schedulerv1.FailedNodesMap{"n2": noVolume},
		},
		"S6 both claims, that upstream fails": {
			objects: []obj.Object{disk("d1", "1Gi", "n1", append(rwo, rwx...)...), disk("d2", "2Gi", "n1", rwo...), claim("a", "1Gi", local, rwo...), claim("b", "1Gi", local, rwx...)},
			claims:  []string{"a", "b"}, fits: []string{"n1"}, fails: schedulerv1.FailedNodesMap{"n2": noVolume},
		},
		"S3 a bound volume": {
			objects: []obj.Object{disk("d2", "5Gi", "n2"), bound(claim("data", "5Gi", local), "d2")},
			claims:  []string{"data"}, fits: []string{"n2"}, fails: schedulerv1.FailedNodesMap{"n1": elsewhere},
		},
		"S3 a bound volume that is gone": {
			objects: []obj.Object{bound(claim("data", "5Gi", local), "d9")},
			claims:  []string{"data"}, fails: schedulerv1.FailedNodesMap{"n1": volumeless, "n2": volumeless},
		},
		"S9 two reasons": {
			objects: []obj.Object{disk("d2", "5Gi", "n2"), bound(claim("data", "5Gi", local), "d2"), claim("more", "1Gi", local)},
			claims:  []string{"data", "more"}, fails: schedulerv1.FailedNodesMap{"n1": elsewhere + ", " + noVolume, "n2": noVolume},
		},
		"M2 a volume without claimRef of a claim that is Bound": {
			objects: []obj.Object{disk("d2", "5Gi", "n2"), bound(claim("other", "5Gi", local), "d2"), claim("data", "1Gi", local)},
			claims:  []string{"data"}, fails: schedulerv1.FailedNodesMap{"n1": noVolume, "n2": noVolume},
		},
		"M2 an annotation keeps no volume from others": {
			objects: []obj.Object{disk("d2", "5Gi", "n2"), annotated(claim("a", "5Gi", local), "d2"), claim("data", "1Gi", local)},
			claims:  []string{"data"}, fits: []string{"n2"}, fails: schedulerv1.FailedNodesMap{"n1": noVolume},
		},
		"S5 free storage": {
			objects: []obj.Object{claim("data", "5Gi", made)},
			claims:  []string{"data"}, fits: []string{"n1"}, fails: schedulerv1.FailedNodesMap{"n2": noStorage},
		},
		"S1 an absent claim": {
			claims: []string{"data"}, fails: schedulerv1.FailedNodesMap{"n1": `persistentvolumeclaim "data" not found`, "n2": `persistentvolumeclaim "data" not found`},
		},
		"S2 an Immediate claim": {
			objects: []obj.Object{bindingtest.Class("now"), claim("data", "5Gi", "now")},
			claims:  []string{"data"}, fails: schedulerv1.FailedNodesMap{"n1": "pod has unbound immediate PersistentVolumeClaims", "n2": "pod has unbound immediate PersistentVolumeClaims"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := apitest.New(bindingtest.NewServer())
			api.Drivers = []*storagev1.CSIDriver{driver(disks)}
			api.Capacities = []*storagev1.CSIStorageCapacity{capacity("n1", "10Gi"), capacity("n2", "1Gi")}
			cluster := newClusterOn(t, api, c.objects...)
			got := cluster.filter(pod("web", c.claims...), "n1", "n2", "n9")
			assert.ElementsMatch(t, c.fits, *got.NodeNames)
			assert.Equal(t, c.fails, orNil(got.FailedAndUnresolvableNodes))
			assert.Equal(t, schedulerv1.FailedNodesMap{"n9": "the node is not known to the extender"}, got.FailedNodes)
			assert.Empty(t, got.Error)
			assert.Nil(t, got.Nodes)
		})
	}
}

func orNil(m schedulerv1.FailedNodesMap) schedulerv1.FailedNodesMap {
	if len(m) == 0 {
		return nil
	}
	return m
}

// A scheduler that is not told nodeCacheCapable sends nodes, and gets nodes.
func TestFilterNodesThatAreSent(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "new"), claim("data", "5Gi", local))
	nodes := &corev1.NodeList{Items: []corev1.Node{*node("new"), *node("n1")}}
	got := ask[schedulerv1.ExtenderFilterResult](c, "/filter", schedulerv1.ExtenderArgs{Pod: pod("web", "data"), Nodes: nodes})
	require.Len(t, got.Nodes.Items, 1)
	assert.Equal(t, "new", got.Nodes.Items[0].Name)
	assert.Equal(t, "new", got.Nodes.Items[0].Labels[corev1.LabelHostname], "the node is whole")
	assert.Equal(t, schedulerv1.FailedNodesMap{"n1": noVolume}, got.FailedAndUnresolvableNodes)
	assert.Nil(t, got.NodeNames)
}

func TestPrioritize(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), disk("d2", "100Gi", "n2"), claim("data", "8Gi", local))
	names := []string{"n1", "n2", "n3", "n9"}
	got := ask[schedulerv1.HostPriorityList](c, "/prioritize", schedulerv1.ExtenderArgs{Pod: pod("web", "data"), NodeNames: &names})
	assert.Equal(t, schedulerv1.HostPriorityList{{Host: "n1", Score: 8}, {Host: "n2", Score: 1}, {Host: "n3"}, {Host: "n9"}}, got)

	got = ask[schedulerv1.HostPriorityList](c, "/prioritize", schedulerv1.ExtenderArgs{Pod: pod("web", "none"), NodeNames: &names})
	assert.Len(t, got, 4, "every node has a score, also if there is no plan")
}
