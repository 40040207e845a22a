package extender_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
)

// api is an API server with what apitest has, and besides the binding of pods, drivers and capacities. These last two
// never change.
type api struct {
	*apitest.Server
	drivers    []any
	capacities []any
}

// clientset serves until the test ends.
func (a *api) clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	listening := httptest.NewServer(a)
	t.Cleanup(func() {
		a.Disconnect()
		listening.CloseClientConnections()
		listening.Close()
	})
	set, err := kubernetes.NewForConfig(&rest.Config{Host: listening.URL, QPS: -1})
	require.NoError(t, err)
	return set
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/apis/storage.k8s.io/v1/csidrivers":
		serveAll(w, r, "CSIDriver", a.drivers)
	case path == "/apis/storage.k8s.io/v1/csistoragecapacities":
		serveAll(w, r, "CSIStorageCapacity", a.capacities)
	case strings.HasSuffix(path, "/binding"):
		a.bindPod(w, r)
	default:
		a.Server.ServeHTTP(w, r)
	}
}

// serveAll answers a list, or a watch on which nothing happens after the beginning.
func serveAll(w http.ResponseWriter, r *http.Request, kind string, items []any) {
	out := json.NewEncoder(w)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_ = out.Encode(map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, item := range items {
			_ = out.Encode(map[string]any{"type": "ADDED", "object": item})
		}
		_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": kind,
			"metadata": metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}})
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// bindPod does what the server does with a Binding.
func (a *api) bindPod(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	object, err := a.Client.Get(r.Context(), bindingtest.PodKey(parts[4], parts[6]))
	var sent corev1.Binding
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&sent)
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}
	pod, ok := object.(*corev1.Pod)
	switch {
	case err != nil || !ok:
		status.Status, status.Code, status.Reason = metav1.StatusFailure, http.StatusNotFound, metav1.StatusReasonNotFound
	case pod.UID != sent.UID || pod.Spec.NodeName != "":
		status.Status, status.Code, status.Reason = metav1.StatusFailure, http.StatusConflict, metav1.StatusReasonConflict
	default:
		pod.Spec.NodeName = sent.Target.Name
		_, _ = a.Client.Update(r.Context(), pod)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func driver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "driver", ResourceVersion: "1"},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: new(true)},
	}
}
