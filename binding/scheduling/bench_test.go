package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// localNode has the labels that nodes of a cloud have.
func localNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%05d", i)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelInstanceTypeStable: "m6i.4xlarge", corev1.LabelTopologyRegion: "eu-1", corev1.LabelTopologyZone: fmt.Sprintf("eu-1%c", 'a'+i%3),
		"node.kubernetes.io/pool": "storage", "kubernetes.io/role": "worker"}}}
}

// localVolumes are spread over the nodes evenly, each usable on its node alone.
func localVolumes(count int, nodes []*corev1.Node) []*corev1.PersistentVolume {
	r := rand.New(rand.NewPCG(3, uint64(count)))
	volumes := make([]*corev1.PersistentVolume, count)
	for i := range volumes {
		volumes[i] = storedVolume(fmt.Sprintf("local-%06d", i), Affine(Term(Require1(corev1.LabelHostname, corev1.NodeSelectorOpIn, nodes[i%len(nodes)].Name))))
		volumes[i].Spec.Capacity[corev1.ResourceStorage] = SizeMix(r)
	}
	r.Shuffle(count, func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
	return volumes
}

// regionalVolumes are usable in a zone, which they name with its region, as volumes do that in-tree provisioners made.
func regionalVolumes(count int, nodes []*corev1.Node) []*corev1.PersistentVolume {
	volumes := localVolumes(count, nodes)
	for i, volume := range volumes {
		Affine(Term(Require1(corev1.LabelTopologyRegion, corev1.NodeSelectorOpIn, "eu-1"),
			Require1(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, nodes[i%3].Labels[corev1.LabelTopologyZone])))(volume)
	}
	return volumes
}

// unwantedVolumes are usable anywhere, and slow but for the last.
func unwantedVolumes(count int, nodes []*corev1.Node) []*corev1.PersistentVolume {
	volumes := localVolumes(count, nodes)
	for i, volume := range volumes {
		volume.Spec.NodeAffinity = nil
		volume.Labels = map[string]string{"disk": "slow"}
		if i == count-1 {
			volume.Labels = nil
		}
	}
	return volumes
}

// BenchmarkPlanPodAllNodes is about one pod with one claim, or three, on every node of a cluster with local volumes; or
// with one claim, and regional volumes or a selector that refuses nearly all. x-faster is how many times as long it takes
// to call FindMatchingVolume of component-helpers for every node, as kube-scheduler does. growth is the time compared with
// that for the same pod at 1,000 nodes and 10,000 volumes. All times are medians.
func BenchmarkPlanPodAllNodes(b *testing.B) {
	small := map[string]float64{}
	notSlow := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "disk", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"slow"}}}}
	}
	for _, size := range []struct{ nodes, volumes int }{{1000, 10_000}, {5000, 20_000}} {
		nodes := make([]*corev1.Node, size.nodes)
		for i := range nodes {
			nodes[i] = localNode(i)
		}
		for _, c := range []struct {
			name   string
			claims []obj.Object
			make   func(int, []*corev1.Node) []*corev1.PersistentVolume
		}{
			{"claims=1", []obj.Object{claimNamed("c-0")}, localVolumes},
			{"claims=3", []obj.Object{claimNamed("c-0"), claimNamed("c-1"), claimNamed("c-2")}, localVolumes},
			{"regional", []obj.Object{claimNamed("c-0")}, regionalVolumes},
			{"selector", []obj.Object{claimNamed("c-0", Requesting("1Mi"), notSlow)}, unwantedVolumes},
		} {
			b.Run(fmt.Sprintf("nodes=%d/volumes=%d/%s", size.nodes, size.volumes, c.name), func(b *testing.B) {
				p := planning{pod: podWith("c-0", "c-1", "c-2"), objects: append(c.claims, manualClass())}
				p.pod.Spec.Volumes = p.pod.Spec.Volumes[:len(c.claims)]
				volumes := c.make(size.volumes, nodes)
				request := p.request()
				request.Index.Load(volumes...)
				median := planTime(b, request, nodes)
				if size.nodes == 1000 {
					small[c.name] = median
				}
				if size.nodes == 1000 && c.name == "claims=1" {
					b.ReportMetric(float64(planPeer(b, p.view().Claims[0], volumes, nodes).Nanoseconds())/median, "x-faster")
				}
				if small[c.name] > 0 {
					b.ReportMetric(median/small[c.name], "growth")
				}
				b.ReportMetric(median/float64(size.nodes), "ns/node")
			})
		}
	}
}

// planTime is the time of ours in nanoseconds. Before each run the processor's caches are emptied, as they are by the
// other work of a scheduler: else a small cluster is in the nearest of them, and a large one is not.
func planTime(b *testing.B, request scheduling.Request, nodes []*corev1.Node) (median float64) {
	var all []time.Duration
	otherWork := make([]byte, 64<<20)
	runtime.GC()
	for b.Loop() {
		for i := range otherWork {
			otherWork[i]++
		}
		start := time.Now()
		plans, err := scheduling.PlanPodOnNodes(request, nodes)
		all = append(all, time.Since(start))
		if err != nil || len(plans.Plans) != len(nodes) || !plans.Plans[0].Fits() {
			b.Fatal(err, plans)
		}
	}
	slices.Sort(all)
	median = float64(all[len(all)/2].Nanoseconds())
	b.ReportAllocs()
	b.ReportMetric(median, "ns/op")
	return median
}

// planPeer is the time that FindMatchingVolume takes for one claim and all nodes, the volumes being of its class.
// Whatever else the machine did meanwhile is left out: a call is reckoned to take the median of all.
func planPeer(b *testing.B, claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, nodes []*corev1.Node) time.Duration {
	var all []time.Duration
	for _, node := range nodes {
		start := time.Now()
		if _, err := volumehelpers.FindMatchingVolume(claim, volumes, node, nil, true, true); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2] * time.Duration(len(nodes))
}
