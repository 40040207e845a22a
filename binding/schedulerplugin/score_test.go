package schedulerplugin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// lessIsBetter is the shape of 1.37, moreIsBetter the one that kube-scheduler had until then.
var (
	lessIsBetter = &configv1.VolumeBindingArgs{Shape: []configv1.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}}
	moreIsBetter = &configv1.VolumeBindingArgs{Shape: []configv1.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}}
)

// scores plans a pod, and returns the scores of the nodes.
func (s *scheduler) scores(pod *corev1.Pod, nodes ...*corev1.Node) (scores []int64) {
	s.Helper()
	state := s.plan(pod)
	require.True(s, s.PreScore(s.Context(), state, pod, infosOf(nodes...)).IsSuccess())
	for _, node := range nodes {
		score, status := s.Score(s.Context(), state, pod, nodeInfo{node: node})
		require.True(s, status.IsSuccess())
		scores = append(scores, score)
	}
	return scores
}

// S10: nodes are scored by the shape.
func TestScore(t *testing.T) {
	s := schedulerOn(t, lessIsBetter, claim("data", "local"), claim("there", "local", boundTo("d1")), disk("d1", "10Gi", "n1"), disk("d2", "20Gi", "n2"))
	assert.Equal(t, []int64{0, 75}, s.scores(pod("web", "data"), s.nodes...))
	assert.Equal(t, []int64{0}, s.scores(pod("web", "data"), bindingtest.Node("n9", "z9")), "not planned for")
	assert.Equal(t, []int64{0, 0}, s.scores(pod("web", "there"), s.nodes...), "nothing to bind")
	assert.True(t, s.PreScore(t.Context(), newCycle(), pod("none"), nil).IsSkip())
	assert.Nil(t, s.ScoreExtensions())
	assert.Nil(t, s.PreFilterExtensions())
	assert.Equal(t, "PVBind", s.Name())
}

// S10: what kube-scheduler's own tests expect of pods for which storage is made, alone or beside a volume that is there.
func TestS10ScoreOfWhatIsMade(t *testing.T) {
	requests := func(size string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
		}
	}
	ten := claim("data", "made", requests("10Gi"))
	for name, c := range map[string]struct {
		shape  *configv1.VolumeBindingArgs
		free   []string // in the pools of the nodes
		claims []*corev1.PersistentVolumeClaim
		disks  string // the size of a volume on each node
		want   []int64
	}{
		"one":                            {moreIsBetter, []string{"100Gi", "50Gi", "10Gi"}, []*corev1.PersistentVolumeClaim{ten}, "", []int64{10, 20, 100}},
		"a volume that is there counts":  {moreIsBetter, []string{"100Gi", "50Gi", "10Gi"}, []*corev1.PersistentVolumeClaim{ten, claim("logs", "local", requests("50Gi"))}, "100Gi", []int64{50, 50, 50}},
		"two of a class":                 {moreIsBetter, []string{"100Gi"}, []*corev1.PersistentVolumeClaim{claim("data", "made", requests("50Gi")), claim("logs", "made", requests("50Gi"))}, "", []int64{100}},
		"the node with the least free":   {moreIsBetter, []string{"100Gi", "20Gi", "10Gi"}, []*corev1.PersistentVolumeClaim{ten}, "", []int64{10, 50, 100}},
		"the node with the most of free": {lessIsBetter, []string{"100Gi", "20Gi", "10Gi"}, []*corev1.PersistentVolumeClaim{ten}, "", []int64{90, 50, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "example.com/made"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
			var names []string
			for _, claim := range c.claims {
				names, objects = append(names, claim.Name), append(objects, claim.DeepCopy())
			}
			var nodes []*corev1.Node
			for i, free := range c.free {
				node := bindingtest.Node([]string{"a", "b", "c"}[i], "z")
				nodes = append(nodes, node)
				objects = append(objects, node, &storagev1.CSIStorageCapacity{
					ObjectMeta:       metav1.ObjectMeta{Namespace: "default", Name: node.Name},
					StorageClassName: "made",
					NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node.Name}},
					Capacity:         new(resource.MustParse(free)),
				})
				if c.disks != "" {
					objects = append(objects, disk("disk-"+node.Name, c.disks, node.Name))
				}
			}
			s := schedulerOn(t, c.shape, objects...)
			s.nodes = nodes
			p := pod("web", names...)
			assert.Empty(t, s.filter(s.plan(p), p))
			assert.Equal(t, c.want, s.scores(p, nodes...))
		})
	}
}
