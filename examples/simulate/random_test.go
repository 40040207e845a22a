package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// randomCluster makes manifests of nodes, volumes, and pods that compete for them.
type randomCluster struct {
	*rand.Rand
	entries []dump.Entry
	deletes []target
}

func (c *randomCluster) one(of ...string) string { return of[c.IntN(len(of))] }

func (c *randomCluster) add(object obj.Object) {
	c.entries = append(c.entries, dump.Entry{Object: object, Name: object.GetName()})
}

func (c *randomCluster) class(name, provisioner string, mode storagev1.VolumeBindingMode) {
	c.add(bindingtest.Class(name, func(c *storagev1.StorageClass) { c.Provisioner, c.VolumeBindingMode = provisioner, &mode }))
}

func (c *randomCluster) volume(name string) {
	volume := bindingtest.Volume(name, c.one("1Gi", "2Gi", "3Gi"))
	volume.Spec.StorageClassName = c.one("local", "local", "made", "made", "now")
	volume.Spec.AccessModes = [][]corev1.PersistentVolumeAccessMode{
		{corev1.ReadWriteOnce}, {corev1.ReadWriteOnce, corev1.ReadWriteMany}, {corev1.ReadWriteOncePod}}[c.IntN(3)]
	if c.IntN(6) == 0 {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: dump.DefaultNamespace, Name: c.one("c0", "c1", "c2")}
	}
	if c.IntN(4) > 0 {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.one("n0", "n1", "n2")}}}}}}}
	}
	c.add(volume)
}

func (c *randomCluster) claim(name string) {
	claim := bindingtest.Claim(dump.DefaultNamespace, name, c.one("1Gi", "2Gi"))
	claim.Spec.StorageClassName = new(c.one("local", "local", "local", "made", "made", "now"))
	claim.Spec.AccessModes[0] = corev1.PersistentVolumeAccessMode(c.one("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
	if c.IntN(10) == 0 {
		claim.Annotations = map[string]string{storageclass.SelectedNodeAnnotation: c.one("n0", "n1", "n9")}
	}
	if c.IntN(10) == 0 {
		claim.Spec.VolumeName = c.one("v0", "v1", "v9")
	}
	c.add(claim)
}

func (c *randomCluster) pod(name string) {
	var claims []string
	for range 1 + c.IntN(2) {
		if claim := fmt.Sprintf("c%d", c.IntN(4)); !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	c.add(bindingtest.Pod(dump.DefaultNamespace, name, c.one("", "", "", "", "", "", "n0"), claims...))
}

func newRandomCluster(r *rand.Rand) *randomCluster {
	c := &randomCluster{Rand: r}
	c.class("local", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer)
	c.class("made", "disks.example.com", storagev1.VolumeBindingWaitForFirstConsumer)
	c.class("now", "disks.example.com", storagev1.VolumeBindingImmediate)
	for i := range min(3, c.IntN(9)) {
		node := &corev1.Node{}
		node.Name = fmt.Sprintf("n%d", i)
		node.Labels = map[string]string{corev1.LabelHostname: node.Name}
		c.add(node)
	}
	for i := range 2 + c.IntN(8) {
		c.volume(fmt.Sprintf("v%d", i))
	}
	for i := range 2 + c.IntN(3) {
		c.claim(fmt.Sprintf("c%d", i))
	}
	for i := range 1 + c.IntN(5) {
		c.pod(fmt.Sprintf("p%d", i))
	}
	if c.IntN(2) == 0 {
		c.deletes = []target{{"pod", dump.DefaultNamespace, "p0"}}
	}
	return c
}

// However the pods compete, it comes to an end; who was placed can have its volumes there, and of everybody else it is
// said why not.
func TestPodsOfRandomClusters(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	clusters, placed, waiting := 1000, 0, 0
	if testing.Short() {
		clusters = 50
	}
	for n := range clusters {
		c := newRandomCluster(r)
		s, err := play(context.Background(), c.entries, c.deletes)
		require.NoError(t, err, "cluster %d", n)
		result, err := s.result(context.Background())
		require.NoError(t, err)
		objects, err := s.objects(context.Background())
		require.NoError(t, err)
		requirePodsAreRight(t, result, objects, fmt.Sprintf("cluster %d", n))
		placed += len(result.placed)
		waiting += len(result.waiting)
	}
	t.Log(placed, "placed,", waiting, "not")
	assert.Greater(t, placed, clusters/4)
	assert.Greater(t, waiting, clusters/4)
}

func requirePodsAreRight(t *testing.T, r result, objects []obj.Object, where string) {
	nodes := map[string]*corev1.Node{}
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok {
			nodes[node.Name] = node
		}
	}
	alone := map[obj.Key]string{}
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		if !ok || len(reclaim.ClaimNames(pod)) == 0 {
			continue
		}
		key := podKey(pod)
		isPlaced := slices.ContainsFunc(r.placed, func(p placedPod) bool { return podKey(p.Pod) == key && p.Spec.NodeName == pod.Spec.NodeName })
		isWaiting := slices.ContainsFunc(r.waiting, func(w waitingPod) bool { return w.pod == key && w.why != "" })
		require.Equal(t, pod.Spec.NodeName == "", isWaiting, "%s %s", where, key)
		if !isPlaced {
			continue
		}
		for _, v := range scheduling.VolumesOf(pod, r) {
			require.True(t, v.Ready(), "%s %s: %s", where, key, v.Wait)
			require.Equal(t, phase.ClaimRefBound, phase.ClaimRefStateOf(v.Volume, v.Claim))
			require.True(t, acceptsNode(v.Volume, nodes[pod.Spec.NodeName]), "%s %s", where, key)
			if slices.Contains(v.Claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
				require.Empty(t, alone[obj.KeyOf(v.Claim)], "%s %s", where, key)
				alone[obj.KeyOf(v.Claim)] = pod.Name
			}
		}
	}
}

func acceptsNode(volume *corev1.PersistentVolume, node *corev1.Node) bool {
	affinity := volume.Spec.NodeAffinity
	return affinity == nil || slices.Contains(affinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values, node.Name)
}
