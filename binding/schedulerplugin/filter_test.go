package schedulerplugin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// A pod without claims costs nothing: PreFilter skips it, and the extension points that the framework calls all the same return at
// once.
func TestPodsWithoutClaimsCostNothing(t *testing.T) {
	s := schedulerOn(t, nil)
	p := pod("web")
	p.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	state, infos, ctx := newCycle(), infosOf(s.nodes...), t.Context()
	var cycle framework.CycleState = state
	for name, hook := range map[string]func() *framework.Status{
		"PreFilter": func() *framework.Status { _, status := s.PreFilter(ctx, cycle, p, infos); return status },
		"PreScore":  func() *framework.Status { return s.PreScore(ctx, cycle, p, infos) },
		"PreFlight": func() *framework.Status { _, status := s.PreBindPreFlight(ctx, cycle, p, "n1"); return status },
	} {
		assert.True(t, hook().IsSkip(), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { hook() }), name)
	}
	for name, hook := range map[string]func() *framework.Status{
		"Filter":    func() *framework.Status { return s.Filter(ctx, cycle, p, infos[0]) },
		"Score":     func() *framework.Status { _, status := s.Score(ctx, cycle, p, infos[0]); return status },
		"Reserve":   func() *framework.Status { return s.Reserve(ctx, cycle, p, "n1") },
		"Unreserve": func() *framework.Status { s.Unreserve(ctx, cycle, p, "n1"); return nil },
		"PreBind":   func() *framework.Status { return s.PreBind(ctx, cycle, p, "n1") },
	} {
		assert.Nil(t, hook(), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { hook() }), name)
	}
	assert.Empty(t, state.data)
}

// S1, S2: pods that must wait whatever the node. The texts are those of kube-scheduler.
func TestS1S2PreFilterRejects(t *testing.T) {
	lost := claim("lost", "local", boundTo("gone"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })
	deleting := claim("deleting", "local", func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	})
	ephemeral := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		return p
	}
	malformed := bindingtest.Class("malformed")
	s := schedulerOn(t, nil, lost, deleting, malformed, bindingtest.Class("immediate", func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	}), claim("unbound", "immediate"), claim("unknown", "no-such-class"), claim("fine", "local"), claim("theirs-scratch", "local"))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"S1 no claim":         {pod("web", "fine", "none"), `persistentvolumeclaim "none" not found`},
		"S1 no claim yet":     {ephemeral("new"), `waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"`},
		"S1 another's claim":  {ephemeral("theirs"), `PVC default/theirs-scratch was not created for pod default/theirs (pod is not owner)`},
		"S1 lost":             {pod("web", "lost"), `persistentvolumeclaim "lost" bound to non-existent persistentvolume "gone"`},
		"S1 deleting":         {pod("web", "deleting"), `persistentvolumeclaim "deleting" is being deleted`},
		"S1 the first counts": {pod("web", "unbound", "deleting", "none"), `persistentvolumeclaim "deleting" is being deleted`},
		"S2 immediate":        {pod("web", "fine", "unbound"), "pod has unbound immediate PersistentVolumeClaims"},
		"S2 unknown class":    {pod("web", "unknown"), "pod has unbound immediate PersistentVolumeClaims"},
	} {
		t.Run(name, func(t *testing.T) {
			state := newCycle()
			_, status := s.PreFilter(t.Context(), state, c.pod, infosOf(s.nodes...))
			assert.Equal(t, framework.UnschedulableAndUnresolvable, status.Code())
			assert.Equal(t, []string{c.want}, status.Reasons())
			assert.Empty(t, state.data)
		})
	}
}

// S3 to S5: why not on a node, in kube-scheduler's words and order.
func TestS9FilterSaysWhy(t *testing.T) {
	const (
		affinity = "node(s) didn't match PersistentVolume's node affinity"
		nothing  = "node(s) didn't find available persistent volumes to bind"
		full     = "node(s) did not have enough free storage"
		gone     = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	)
	taken := disk("taken", "10Gi", "n1")
	taken.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "there", UID: "uid"}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "example.com/made"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	objects := []runtime.Object{taken, driver, disk("free", "10Gi", "n2"), claim("there", "local", boundTo("taken"), func(c *corev1.PersistentVolumeClaim) { c.UID = "uid" }),
		claim("new", "local"), claim("room", "made"), claim("orphan", "local", boundTo("no-such-volume"))}
	s := schedulerOn(t, nil, objects...)
	for name, c := range map[string]struct {
		claims []string
		n1, n2 string
	}{
		"S3 bound":               {[]string{"there"}, "", affinity},
		"S3 to no volume":        {[]string{"orphan"}, gone, gone},
		"S4 a volume":            {[]string{"new"}, nothing, ""},
		"S5 no room":             {[]string{"room"}, full, full},
		"S9 bound and unbound":   {[]string{"there", "new"}, nothing, affinity},
		"S9 several on one node": {[]string{"there", "room"}, full, affinity + ", " + full},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("web", c.claims...)
			want := map[string]string{}
			for node, reason := range map[string]string{"n1": c.n1, "n2": c.n2} {
				if reason != "" {
					want[node] = reason
				}
			}
			assert.Equal(t, want, s.filter(s.plan(p), p))
		})
	}
}

// A pod is planned once for all nodes; a node that PreFilter has not seen, or has seen in another version, is planned for when
// Filter comes to it. Preemption copies the state.
func TestFilterLooksUpThePlan(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), disk("d1", "10Gi", "n1"), disk("d3", "10Gi", "n3"))
	p := pod("web", "data")
	state := s.plan(p)
	require.NoError(t, s.Delete(t.Context(), obj.VolumeKey("d1"), metav1.DeleteOptions{}))
	s.eventually(func() bool {
		listed, err := s.informers.Core().V1().PersistentVolumes().Lister().Get("d1")
		return listed == nil && err != nil
	}, "the informer has seen it")
	const nothing = "node(s) didn't find available persistent volumes to bind"
	assert.Equal(t, map[string]string{"n2": nothing}, s.filter(state, p), "as it was planned")
	assert.Equal(t, map[string]string{"n2": nothing}, s.filter(state.clone(), p))

	on := func(node *corev1.Node) *framework.Status {
		return s.Filter(t.Context(), state, p, nodeInfo{node: node})
	}
	assert.True(t, on(bindingtest.Node("n3", "z3")).IsSuccess(), "it has come since")
	n3 := bindingtest.Node("n2", "z2", func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "n3" })
	assert.True(t, on(n3).IsSuccess(), "it was labelled since")
	s.reserve(state, p, "n2")
	assert.Equal(t, "n3", n3.Labels[corev1.LabelHostname], "S3 and what is reserved is of that version")
	s.Unreserve(t.Context(), state, p, "n2")
}

// What is not there yet when a pod comes is there when it is tried again. Nodes that come and go are planned for.
func TestNodesComeAndGo(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), disk("d3", "10Gi", "n3"))
	p := pod("web", "data")
	assert.Len(t, s.filter(s.plan(p), p), 2)
	s.nodes = append(s.nodes, bindingtest.Node("n3", "z3"))
	assert.Len(t, s.filter(s.plan(p), p), 2, "of three")
	s.nodes = s.nodes[2:]
	assert.Empty(t, s.filter(s.plan(p), p))
	s.nodes = []*corev1.Node{bindingtest.Node("n4", "z4")}
	assert.Len(t, s.filter(s.plan(p), p), 1, "as many nodes, but another")
}

// Without SignPod a profile would sign no pod.
func TestSignPod(t *testing.T) {
	s := schedulerOn(t, nil)
	signed := func(pod *corev1.Pod) framework.SignFragment {
		fragments, status := s.SignPod(t.Context(), pod)
		require.True(t, status.IsSuccess())
		require.Len(t, fragments, 1)
		return fragments[0]
	}
	assert.Equal(t, framework.VolumesSignerName, signed(pod("a", "data")).Key)
	assert.Equal(t, signed(pod("a", "data")), signed(pod("b", "data")))
	assert.NotEqual(t, signed(pod("a", "data")), signed(pod("a", "logs")))
}
