package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// fleetTime is how long a scheduler has for its pods.
const fleetTime = 120 * time.Second

var (
	fleetSizes = []struct{ nodes, volumes, pods int }{{100, 1000, 500}, {1000, 10000, 2000}, {5000, 20000, 2000}}
	// fleetPods are the pods of a fleet: how many claims they have, of which class.
	fleetPods = []struct {
		name   string
		claims int
		class  string
	}{{"one", 1, "local"}, {"three", 3, "local"}, {"dynamic", 1, "made"}}
)

// BenchmarkFleet has pods scheduled on nodes with local volumes, or with storage to make them from: by kube-scheduler as it comes, by
// the same with pvextender, and by the one with the plugin. Each has a control plane of its own, with pvbinder.
func BenchmarkFleet(b *testing.B) {
	spent := map[int]float64{} // by the plugin for a pod with one claim, by nodes
	for _, size := range fleetSizes {
		for _, kind := range fleetPods {
			b.Run(fmt.Sprintf("%dx%d/%s", size.nodes, size.volumes, kind.name), func(b *testing.B) {
				for b.Loop() {
					f := fleet{size.nodes, size.volumes, size.pods / kind.claims, kind.claims, kind.class}
					theirs, extender, ours := f.run(b, "kube-scheduler"), f.run(b, "pvextender"), f.run(b, "plugin")
					b.ReportMetric(theirs.rate(), "stock-pods/s")
					b.ReportMetric(extender.rate(), "extender-pods/s")
					b.ReportMetric(ours.rate(), "plugin-pods/s")
					b.ReportMetric(ours.rate()/theirs.rate(), "x-stock")
					assert.Zero(b, ours.left, "pods that could run")
					if kind.name != "one" {
						continue
					}
					spent[f.nodes] = ours.each()
					if f.nodes == 1000 {
						assert.GreaterOrEqual(b, ours.rate()/theirs.rate(), 300., "times kube-scheduler as it comes")
					}
					if before, measured := spent[1000]; measured && f.nodes == 5000 {
						assert.LessOrEqual(b, ours.each()/before, 8., "times the processor time a pod")
					}
				}
			})
		}
	}
}

type fleet struct {
	nodes, volumes, pods, claims int
	class                        string
}

// scheduledPods is what a scheduler did.
type scheduledPods struct {
	placed, left int
	first, took  time.Duration
	cpu          time.Duration // since it was ready
	memory       int64
}

func (s scheduledPods) rate() float64 { return float64(s.placed) / s.took.Seconds() }
func (s scheduledPods) each() float64 { return s.cpu.Seconds() / float64(max(s.placed, 1)) }

func (s scheduledPods) String() string {
	return fmt.Sprintf("%8.2f pods/s: %d in %.1f s, the first after %.2f s, %d left Pending; %.1f ms of processor time a pod, %d MB",
		s.rate(), s.placed, s.took.Seconds(), s.first.Seconds(), s.left, 1000*s.each(), s.memory>>20)
}

// run has the pods scheduled, on a control plane with everything else there already.
func (f fleet) run(b *testing.B, by string) scheduledPods {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "cluster")
	c, err := startCluster(dir)
	require.NoError(b, err)
	defer c.plane.Stop()
	binder := startBinder(b, c)
	defer binder.Kill()
	w := makeWorld(b, c, "fleet", "scheduler")
	pods := f.furnish(w)
	processes := f.start(b, c, by)
	for _, process := range processes {
		defer process.Kill()
	}
	w.Create(w.Pod("warm-up"))
	w.Scheduled("warm-up")
	before := cpuOf(processes)
	done := w.watchPods(len(pods))
	w.Create(pods...)
	s := <-done
	s.left = len(pods) - s.placed
	s.cpu = cpuOf(processes) - before
	for _, process := range processes {
		s.memory += process.PeakMemory()
	}
	b.Logf("%-14s %s", by, s)
	return s
}

// furnish creates all but the pods, which it returns.
func (f fleet) furnish(w *world) (pods []obj.Object) {
	objects := []obj.Object{w.Class("local"), w.Class("made", w.Provisioned), w.Driver()}
	names := make([]string, 0, f.volumes)
	for n := range f.nodes {
		node := fmt.Sprintf("n%d", n)
		objects = append(objects, w.Node(node))
		if f.class == "made" {
			objects = append(objects, w.Capacity(node, fmt.Sprintf("%dGi", 100+n%7)))
			continue
		}
		for d := range f.volumes / f.nodes {
			names = append(names, fmt.Sprintf("d%d-%d", n, d))
			objects = append(objects, w.Disk(names[len(names)-1], "10Gi", node))
		}
	}
	for p := range f.pods {
		var claims []string
		for c := range f.claims {
			claims = append(claims, fmt.Sprintf("data-%d-%d", p, c))
			objects = append(objects, w.Claim(claims[c], "10Gi", f.class))
		}
		pods = append(pods, w.Pod(fmt.Sprintf("pod-%d", p), claims...))
	}
	w.Create(objects...)
	w.Available(names...)
	if f.class == "made" {
		w.provision()
	}
	return pods
}

// start starts what is measured.
func (f fleet) start(b *testing.B, c cluster, by string) (processes []*controlplane.Process) {
	b.Helper()
	switch by {
	case "kube-scheduler":
		return append(processes, asItComes("scheduler").start(b, c))
	case "plugin":
		return append(processes, withPlugin(b, "scheduler").start(b, c))
	}
	kubeconfig, err := c.plane.Kubeconfig("pvextender", c.plane.Config().BearerToken)
	require.NoError(b, err)
	extender, err := c.plane.Run("pvextender", filepath.Join(programs, "pvextender"), "--kubeconfig", kubeconfig, "--listen=127.0.0.1:0", "--logging-format=json")
	processes = append(processes, controlplane.ForTest(b, extender, err))
	var address string
	clustertest.Eventually(b, func() bool {
		address = addressIn(extender.Output())
		return address != ""
	}, "the extender listens")
	s := asItComes("scheduler")
	s.config.PercentageOfNodesToScore = new(int32(100))
	s.config.Profiles[0].Plugins = &configv1.Plugins{MultiPoint: configv1.PluginSet{Disabled: []configv1.Plugin{{Name: "VolumeBinding"}}}}
	s.config.Extenders = []configv1.Extender{{
		URLPrefix: "http://" + address, FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind", Weight: 1, NodeCacheCapable: true,
		HTTPTimeout: metav1.Duration{Duration: 11 * time.Minute},
	}}
	return append(processes, s.start(b, c))
}

func addressIn(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
			return said.Address
		}
	}
	return ""
}

func cpuOf(processes []*controlplane.Process) (total time.Duration) {
	for _, process := range processes {
		total += process.CPU()
	}
	return total
}

// watchPods answers when so many pods have their nodes, or the time is up. It begins now.
func (w *world) watchPods(count int) <-chan scheduledPods {
	w.Helper()
	placed := make(chan time.Time, count+1)
	pods := informers.NewSharedInformerFactoryWithOptions(w.Client, 0, informers.WithNamespace(w.Namespace), informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = "spec.nodeName!="
	})).Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if object.(*corev1.Pod).Name != "warm-up" {
			placed <- time.Now()
		}
	}})
	require.NoError(w, err)
	stop := make(chan struct{})
	go pods.Run(stop)
	require.True(w, cache.WaitForCacheSync(stop, pods.HasSynced))
	began, done := time.Now(), make(chan scheduledPods, 1)
	go func() {
		defer close(stop)
		var s scheduledPods
		for end := time.After(fleetTime); s.placed < count; {
			select {
			case at := <-placed:
				s.took = at.Sub(began)
				if s.placed++; s.placed == 1 {
					s.first = s.took
				}
			case <-end:
				s.took = fleetTime
				count = s.placed
			}
		}
		done <- s
	}()
	return done
}
