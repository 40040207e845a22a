package schedulerplugin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// changed returns a copy of an object with a change.
func changed[T interface{ DeepCopy() T }](object T, change func(T)) T {
	copied := object.DeepCopy()
	change(copied)
	return copied
}

// What may help a pod that was rejected, and what cannot. The pod has a claim of each class that waits, and one that is bound.
func TestHints(t *testing.T) {
	s := schedulerOn(t, nil, claim("data", "local"), claim("logs", "made"), claim("there", "local", boundTo("d1")))
	web := pod("web", "data", "logs", "there", "later")
	web.Spec.Volumes = append(web.Spec.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}})
	s.plan(pod("none", "data")) // the informers have shown all

	refersTo := func(claim string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
		}
	}
	free := disk("d2", "10Gi", "n1")
	pre, taken := changed(free, refersTo("data")), changed(free, refersTo("other"))
	fast := changed(free, func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "fast" })
	d1 := changed(disk("d1", "10Gi", "n1"), refersTo("there"))
	node := bindingtest.Node("n1", "z1")
	class := waiting("made", "example.com/made")
	allows := changed(class, func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"z1"}}}}}
	})
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	migrated := changed(csiNode, func(n *storagev1.CSINode) {
		n.Annotations = map[string]string{corev1.MigratedPluginsAnnotationKey: "kubernetes.io/gce-pd"}
	})
	counts := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "example.com/made"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	uncounted := changed(counts, func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = new(false) })
	another := changed(counts, func(d *storagev1.CSIDriver) { d.Name = "example.com/other" })
	room := func(size string) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{StorageClassName: "made", NodeTopology: &metav1.LabelSelector{}, Capacity: new(resource.MustParse(size))}
	}
	elsewhere := changed(room("10Gi"), func(c *storagev1.CSIStorageCapacity) { c.StorageClassName = "local-2" })
	theirs := changed(claim("data", "local"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "other" })

	const claims, volumes = framework.PersistentVolumeClaim, framework.PersistentVolume
	for name, c := range map[string]struct {
		resource    framework.EventResource
		before, now any
		want        framework.QueueingHint
	}{
		"its claim has come":               {claims, nil, claim("later", "local"), framework.Queue},
		"its claim has changed":            {claims, claim("data", "local"), claim("data", "local"), framework.Queue},
		"another claim":                    {claims, nil, claim("other", "local"), framework.QueueSkip},
		"a claim of another namespace":     {claims, nil, theirs, framework.QueueSkip},
		"a claim that had a volume goes":   {claims, claim("other", "local", boundTo("d2")), nil, framework.Queue},
		"a claim that had none goes":       {claims, claim("other", "local"), nil, framework.QueueSkip},
		"a free volume":                    {volumes, nil, free, framework.Queue},
		"a volume is free again":           {volumes, taken, free, framework.Queue},
		"a free volume of another class":   {volumes, nil, fast, framework.QueueSkip},
		"a volume is taken":                {volumes, free, taken, framework.QueueSkip},
		"a taken volume":                   {volumes, nil, taken, framework.QueueSkip},
		"a volume is pre-bound":            {volumes, free, pre, framework.Queue},
		"a volume was pre-bound":           {volumes, pre, taken, framework.Queue},
		"its own volume":                   {volumes, nil, d1, framework.Queue},
		"a node":                           {framework.Node, nil, node, framework.Queue},
		"other labels":                     {framework.Node, node, changed(node, func(n *corev1.Node) { n.Labels["new"] = "" }), framework.Queue},
		"the same labels":                  {framework.Node, node, changed(node, func(n *corev1.Node) { n.Spec.Unschedulable = true }), framework.QueueSkip},
		"its class":                        {framework.StorageClass, nil, class, framework.Queue},
		"another class":                    {framework.StorageClass, nil, waiting("other", "x"), framework.QueueSkip},
		"its class allows other nodes":     {framework.StorageClass, class, allows, framework.Queue},
		"its class is as before":           {framework.StorageClass, class, class.DeepCopy(), framework.QueueSkip},
		"a plugin is migrated":             {framework.CSINode, csiNode, migrated, framework.Queue},
		"none is migrated":                 {framework.CSINode, nil, csiNode, framework.QueueSkip},
		"a node of a migrated plugin":      {framework.CSINode, nil, migrated, framework.Queue},
		"nobody says what is migrated":     {framework.CSINode, migrated, nil, framework.Queue},
		"capacity does not count any more": {framework.CSIDriver, counts, uncounted, framework.Queue},
		"its driver is gone":               {framework.CSIDriver, counts, nil, framework.Queue},
		"its driver is as before":          {framework.CSIDriver, counts, counts.DeepCopy(), framework.QueueSkip},
		"capacity begins to count":         {framework.CSIDriver, uncounted, counts, framework.QueueSkip},
		"another driver is gone":           {framework.CSIDriver, another, nil, framework.QueueSkip},
		"room":                             {framework.CSIStorageCapacity, nil, room("5Gi"), framework.Queue},
		"room for less":                    {framework.CSIStorageCapacity, nil, room("4Gi"), framework.QueueSkip},
		"more room":                        {framework.CSIStorageCapacity, room("4Gi"), room("6Gi"), framework.Queue},
		"more room than enough":            {framework.CSIStorageCapacity, room("5Gi"), room("6Gi"), framework.QueueSkip},
		"room for another class":           {framework.CSIStorageCapacity, nil, elsewhere, framework.QueueSkip},
		"a pod with claims goes":           {framework.Pod, pod("other", "shared"), nil, framework.Queue},
		"a pod without claims goes":        {framework.Pod, pod("other"), nil, framework.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.hint(t, c.resource)(klog.Background(), web, c.before, c.now)
			require.NoError(t, err)
			assert.Equal(t, c.want, got, got.String())
		})
	}
	got, err := s.hint(t, volumes)(klog.Background(), web, nil, node)
	assert.ErrorContains(t, err, "want two *v1.PersistentVolume, got <nil> and *v1.Node")
	assert.Equal(t, framework.Queue, got)
	bound := pod("bound", "there")
	for _, c := range [][3]any{{volumes, nil, free}, {framework.Pod, pod("other", "shared"), nil}, {claims, claim("other", "local", boundTo("d2")), nil}} {
		got, err = s.hint(t, c[0].(framework.EventResource))(klog.Background(), bound, c[1], c[2])
		require.NoError(t, err)
		assert.Equal(t, framework.QueueSkip, got, "all of its claims are bound: %v", c[0])
	}
}

// hint returns the hint for events of a resource.
func (s *scheduler) hint(t *testing.T, of framework.EventResource) framework.QueueingHintFn {
	t.Helper()
	events, err := s.EventsToRegister(t.Context())
	require.NoError(t, err)
	for _, event := range events {
		if event.Event.Resource == of {
			return event.QueueingHintFn
		}
	}
	require.Fail(t, "not registered: "+string(of))
	return nil
}

// A pod that is tried again because of an event is planned with what that event was about, though the plugin's own handlers may be
// told of it later.
func TestTriedAgainAtOnce(t *testing.T) {
	const rounds = 100
	s := schedulerOn(t, nil, claim("data", "local"))
	p := pod("web", "data")
	s.plan(p)
	why := make(chan string, rounds)
	_, err := s.informers.Core().V1().PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			state := newCycle()
			_, status := s.PreFilter(t.Context(), state, p, infosOf(s.nodes...))
			if status.IsSuccess() {
				status = s.Filter(t.Context(), state, p, nodeInfo{node: s.nodes[0]})
			}
			why <- status.Message()
		},
	})
	require.NoError(t, err)
	for i := range rounds {
		_, err := s.Create(t.Context(), disk("d", "10Gi", "n1"))
		require.NoError(t, err)
		require.Empty(t, <-why, "round %d", i)
		stored := s.Volume("d")
		stored.Finalizers = nil
		_, err = s.Update(t.Context(), stored)
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), obj.VolumeKey("d"), metav1.DeleteOptions{}))
	}
}
