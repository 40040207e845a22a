package apitest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pvbind/pvbind/binding/obj"
)

// Request is a request in the terms of RBAC.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete or deletecollection
	Group       string
	Resource    string // such as "persistentvolumes"
	Subresource string
	Namespace   string
	Name        string
}

// kinds returns the resources that a bindingtest.Server stores. All are served in version v1.
func kinds() map[schema.GroupResource]obj.Kind {
	return map[schema.GroupResource]obj.Kind{
		{Resource: "persistentvolumes"}:                             obj.KindVolume,
		{Resource: "persistentvolumeclaims"}:                        obj.KindClaim,
		{Resource: "nodes"}:                                         obj.KindNode,
		{Resource: "pods"}:                                          obj.KindPod,
		{Group: storagev1.GroupName, Resource: "storageclasses"}:    obj.KindClass,
		{Group: storagev1.GroupName, Resource: "volumeattachments"}: obj.KindAttachment,
		{Group: storagev1.GroupName, Resource: "csinodes"}:          obj.KindCSINode,
	}
}

// resourceOf returns the resource of a kind that is stored.
func resourceOf(kind obj.Kind) schema.GroupVersionResource {
	for resource, stored := range kinds() {
		if stored == kind {
			return resource.WithVersion("v1")
		}
	}
	panic("apitest: the kind is not served: " + kind)
}

func (r Request) kind() obj.Kind { return kinds()[r.groupResource()] }

func (r Request) key() obj.Key {
	return obj.Key{Kind: r.kind(), Namespace: r.Namespace, Name: r.Name}
}

func (r Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

func (r Request) resource() schema.GroupVersionResource {
	return r.groupResource().WithVersion("v1")
}

// parse reads method and path: /api/v1/…, /apis/GROUP/v1/…, with namespaces/NAMESPACE/ or without.
func parse(r *http.Request) (Request, error) {
	var request Request
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api" && parts[1] == "v1":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis" && parts[2] == "v1":
		request.Group, parts = parts[1], parts[3:]
	default:
		return request, missing(r.URL.Path)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&request.Resource, &request.Name, &request.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	request.Verb = verbOf(r, request.Name)
	notStored := []string{"events", "leases", csiDrivers, csiStorageCapacities}
	if request.kind() == "" && !slices.Contains(notStored, request.Resource) || len(parts) > 3 {
		return request, missing(r.URL.Path)
	}
	return request, nil
}

func verbOf(r *http.Request, name string) string {
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete && name == "":
		return "deletecollection"
	case r.Method == http.MethodDelete:
		return "delete"
	case name != "":
		return "get"
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		return "watch"
	}
	return "list"
}

func missing(path string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, path, "apitest does not serve this", 0, false)
}

func badRequest(err error) error { return apierrors.NewBadRequest(err.Error()) }

func forbidden(r Request) error {
	return apierrors.NewForbidden(r.groupResource(), r.Name, fmt.Errorf("may not %s %s", r.Verb, r.Resource))
}

// decode reads the body, in JSON or protobuf; nil if it is empty.
func decode(r *http.Request) (runtime.Object, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, badRequest(err)
	}
	return object, nil
}

func decodeOptions(r *http.Request) (metav1.DeleteOptions, error) {
	decoded, err := decode(r)
	if err != nil || decoded == nil {
		return metav1.DeleteOptions{}, err
	}
	options, ok := decoded.(*metav1.DeleteOptions)
	if !ok {
		return metav1.DeleteOptions{}, errors.New("the body has no DeleteOptions")
	}
	return *options, nil
}
