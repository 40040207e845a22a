// Package settling tells the stories of claims that just bind, in a test of every surface on which bindingtest settles: the server
// in memory, the fake clients, and a real API server.
package settling

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is a surface: the calls of a client as its users make them, and the Settle for that client.
type Cluster interface {
	Create(ctx context.Context, object obj.Object) error
	// Update writes metadata and spec.
	Update(ctx context.Context, object obj.Object) error
	Delete(ctx context.Context, object obj.Object) error
	// Get returns the object of that type and name; an error of the API if there is none.
	Get(ctx context.Context, object obj.Object) (obj.Object, error)
	Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error)
}

// Run tells every story on a new Cluster with nothing in it, or with nothing that a story before has not deleted. If the Cluster
// is a Listing, its objects are compared with those of a server in memory on which the same is done.
func Run(t *testing.T, start func(t *testing.T) Cluster) {
	for _, story := range stories() {
		t.Run(story.name, func(t *testing.T) {
			cluster := start(t)
			if listing, ok := cluster.(Listing); ok {
				cluster = newTwin(t, listing)
			}
			story.tell(&Story{T: t, cluster: cluster, options: bindingtest.SettleOptions{Storage: bindingtest.NewStorage()}})
		})
	}
}

// Story is one story that is being told.
type Story struct {
	*testing.T
	cluster Cluster
	options bindingtest.SettleOptions
}

func (s *Story) create(objects ...obj.Object) {
	s.Helper()
	for _, object := range objects {
		require.NoError(s, s.cluster.Create(s.Context(), object))
	}
}

func (s *Story) delete(objects ...obj.Object) {
	s.Helper()
	for _, object := range objects {
		require.NoError(s, s.cluster.Delete(s.Context(), object))
	}
}

// settle settles, and returns what is not bound.
func (s *Story) settle() bindingtest.Outcome {
	s.Helper()
	outcome, err := s.cluster.Settle(s.Context(), s.options)
	require.NoError(s, err)
	return outcome
}

// bind settles, and has everything bound and placed.
func (s *Story) bind() {
	s.Helper()
	outcome, err := s.cluster.Settle(s.Context(), s.options)
	require.NoError(s, errors.Join(err, outcome.Err()))
}

// get returns the object as it is now; nil if it is gone.
func get[T obj.Object](s *Story, object T) (found T) {
	s.Helper()
	now, err := s.cluster.Get(s.Context(), object)
	if err != nil {
		key, _ := bindingtest.KeyOf(object)
		require.True(s, obj.IsAbsent(err, key), "%v", err)
		return found
	}
	return now.(T)
}

func (s *Story) claim(name string) *corev1.PersistentVolumeClaim {
	s.Helper()
	return get(s, bindingtest.Claim(namespace, name, "1Gi"))
}

// volume returns the volume that the claim has.
func (s *Story) volume(claim string) *corev1.PersistentVolume {
	s.Helper()
	return s.volumeNamed(s.claim(claim).Spec.VolumeName)
}

func (s *Story) volumeNamed(name string) *corev1.PersistentVolume {
	s.Helper()
	return get(s, bindingtest.Volume(name, "1Gi"))
}

func (s *Story) nodeOf(pod string) string {
	s.Helper()
	return get(s, bindingtest.Pod(namespace, pod, "")).Spec.NodeName
}

// edit changes an object as a user does: it is read, changed and written.
func edit[T obj.Object](s *Story, object T, change func(T)) {
	s.Helper()
	object = get(s, object)
	change(object)
	require.NoError(s, s.cluster.Update(s.Context(), object))
}

const (
	namespace = "default"
	driver    = "csi.example.com"
)

// zoned returns a node in a zone.
func zoned(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
}

// statefulSet returns what the controller of a StatefulSet makes: a claim and a pod for each replica.
func statefulSet(replicas int, class string) (objects []obj.Object) {
	for i := range replicas {
		claim := fmt.Sprint("data-db-", i)
		objects = append(objects, claimOf(claim, class), bindingtest.Pod(namespace, fmt.Sprint("db-", i), "", claim))
	}
	return objects
}

func claimOf(name, class string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim(namespace, name, "5Gi", append(edits, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })...)
}

// inZone is the affinity that a volume has in a zone.
func assertIn(s *Story, volume *corev1.PersistentVolume, key, value string) {
	s.Helper()
	require.NotNil(s, volume.Spec.NodeAffinity, volume.Name)
	assert.Equal(s, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}, volume.Spec.NodeAffinity.Required.NodeSelectorTerms)
}
