package apitest

import (
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/obj"
)

const (
	csiDrivers           = "csidrivers"
	csiStorageCapacities = "csistoragecapacities"
)

// fixedVersion is the resourceVersion of what never changes.
const fixedVersion = "1"

// serveFixed answers a list, or a watch on which nothing happens after the beginning.
func serveFixed[T obj.Object](s *Server, w http.ResponseWriter, r *http.Request, request Request, kind string, items []T) {
	switch request.Verb {
	case "list":
		answerList(w, request.Group, kind, fixedVersion, items)
	case "watch":
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			sendFixed(w, kind, items)
		}
		ends := s.connected()
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-ends:
		}
	default:
		answerError(w, apierrors.NewMethodNotSupported(request.groupResource(), request.Verb))
	}
}

// sendFixed sends the items, and that these are all.
func sendFixed[T obj.Object](w http.ResponseWriter, kind string, items []T) {
	out := json.NewEncoder(w)
	for _, item := range items {
		_ = out.Encode(map[string]any{"type": watch.Added, "object": typed(item.DeepCopyObject().(obj.Object))})
	}
	end := metav1.ObjectMeta{ResourceVersion: fixedVersion, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	_ = out.Encode(map[string]any{"type": watch.Bookmark, "object": map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": end}})
}
