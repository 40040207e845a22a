package extender_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/extender"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 30 * time.Second

const (
	disks = "disks.example.com"
	local = "local" // a class of volumes that are there
	made  = "made"  // a class of volumes that are made
)

// cluster is a cluster with an extender.
type cluster struct {
	*testing.T
	*apitest.Server
	clientset *kubernetes.Clientset
	extender  *extender.Server
	url       string
}

// newCluster has the classes local and made, and nodes n1 to n3.
func newCluster(t *testing.T, objects ...obj.Object) *cluster {
	return newClusterOn(t, apitest.New(bindingtest.NewServer()), objects...)
}

func newClusterOn(t *testing.T, api *apitest.Server, objects ...obj.Object) *cluster {
	t.Helper()
	waits := func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	c := &cluster{T: t, Server: api}
	c.create(bindingtest.Class(local, waits), bindingtest.Class(made, waits, func(c *storagev1.StorageClass) { c.Provisioner = disks }),
		node("n1"), node("n2"), node("n3"))
	c.create(objects...)
	var err error
	c.clientset, err = kubernetes.NewForConfig(api.Start(t))
	require.NoError(t, err)
	watched, err := extender.Watch(t.Context(), c.clientset)
	require.NoError(t, err)
	t.Cleanup(watched.Stop)
	c.extender = &extender.Server{Cluster: watched, Clientset: c.clientset, BindTimeout: patience, Logger: slog.New(slog.DiscardHandler)}
	listening := httptest.NewServer(c.extender.Handler())
	t.Cleanup(listening.Close)
	c.url = listening.URL
	return c
}

func (c *cluster) create(objects ...obj.Object) {
	c.Helper()
	for _, object := range objects {
		created, err := c.Server.Create(c.Context(), object)
		require.NoError(c, err)
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase == corev1.ClaimBound {
			stored := created.(*corev1.PersistentVolumeClaim)
			stored.Status = claim.Status
			_, err := c.Server.UpdateStatus(c.Context(), stored)
			require.NoError(c, err)
		}
	}
}

// binder binds claims beside the extender until the test ends.
func (c *cluster) binder() {
	runner := &clientgo.Runner{Clientset: c.clientset, Logger: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(c.Context()) }()
	c.Cleanup(func() { require.NoError(c, <-ended) })
}

func (c *cluster) eventually(so func() bool, what string) {
	c.Helper()
	require.Eventually(c, so, patience, 2*time.Millisecond, what)
}

// post sends a text or, of anything else, the JSON.
func (c *cluster) post(path string, body any) (code int, text string) {
	c.Helper()
	content, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		require.NoError(c, err)
		content = string(encoded)
	}
	response, err := http.Post(c.url+path, "application/json", strings.NewReader(content))
	require.NoError(c, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(c, err)
	return response.StatusCode, string(bytes.TrimSpace(answer))
}

func ask[Result any](c *cluster, path string, args any) Result {
	c.Helper()
	code, text := c.post(path, args)
	require.Equal(c, http.StatusOK, code, text)
	var result Result
	require.NoError(c, json.Unmarshal([]byte(text), &result))
	return result
}

func (c *cluster) filter(pod *corev1.Pod, names ...string) schedulerv1.ExtenderFilterResult {
	c.Helper()
	return ask[schedulerv1.ExtenderFilterResult](c, "/filter", schedulerv1.ExtenderArgs{Pod: pod, NodeNames: &names})
}

// fits waits until the pod fits these nodes and no others, for what the extender knows comes after what happens.
func (c *cluster) fits(pod *corev1.Pod, nodes ...string) {
	c.Helper()
	c.eventually(func() bool {
		return strings.Join(*c.filter(pod, "n1", "n2", "n3").NodeNames, " ") == strings.Join(nodes, " ")
	}, pod.Name+" fits "+strings.Join(nodes, " "))
}

// bind returns why the pod was not bound.
func (c *cluster) bind(pod *corev1.Pod, node string) string {
	c.Helper()
	stored := c.Pod(pod.Namespace, pod.Name)
	require.NotNil(c, stored)
	return ask[schedulerv1.ExtenderBindingResult](c, "/bind",
		schedulerv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: stored.UID, Node: node}).Error
}

// Pod is the pod that is stored.
func (c *cluster) Pod(namespace, name string) *corev1.Pod {
	object, err := c.Server.Get(c.Context(), bindingtest.PodKey(namespace, name))
	if err != nil {
		return nil
	}
	return object.(*corev1.Pod)
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
}

func disk(name, size, node string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return bindingtest.Volume(name, size, func(v *corev1.PersistentVolume) {
		v.Spec.StorageClassName = local
		if len(modes) > 0 {
			v.Spec.AccessModes = modes
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	})
}

func claim(name, size, class string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim("default", name, size, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = &class
		if len(modes) > 0 {
			c.Spec.AccessModes = modes
		}
	})
}

func pod(name string, claims ...string) *corev1.Pod {
	return bindingtest.Pod("default", name, "", claims...)
}

func capacity(node, size string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		TypeMeta:         metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIStorageCapacity"},
		ObjectMeta:       metav1.ObjectMeta{Namespace: "kube-system", Name: node, UID: "capacity", ResourceVersion: "1"},
		StorageClassName: made,
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node}},
		Capacity:         new(resource.MustParse(size)),
	}
}

func driver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "driver", ResourceVersion: "1"},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: new(true)},
	}
}
