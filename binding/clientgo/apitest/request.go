package apitest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pvbind/pvbind/binding/obj"
)

// Request is a request in the terms of RBAC.
type Request struct {
	Verb        string // get, list, watch, create, update, patch or delete
	Group       string
	Resource    string // such as "persistentvolumes"
	Subresource string
	Namespace   string
	Name        string
}

// kinds returns the resources that a bindingtest.Server stores.
func kinds() map[string]obj.Kind {
	return map[string]obj.Kind{
		"persistentvolumes":      obj.KindVolume,
		"persistentvolumeclaims": obj.KindClaim,
		"storageclasses":         obj.KindClass,
		"nodes":                  obj.KindNode,
		"pods":                   obj.KindPod,
		"volumeattachments":      obj.KindAttachment,
		"csinodes":               obj.KindCSINode,
	}
}

func (r Request) key() obj.Key {
	return obj.Key{Kind: kinds()[r.Resource], Namespace: r.Namespace, Name: r.Name}
}

func (r Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
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
	switch _, stored := kinds()[request.Resource]; {
	case !stored && request.Resource != "events" && request.Resource != "leases", len(parts) > 3:
		return request, missing(r.URL.Path)
	case r.URL.Query().Get("labelSelector")+r.URL.Query().Get("fieldSelector") != "":
		return request, apierrors.NewBadRequest("apitest has no selectors")
	}
	return request, nil
}

func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch {
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
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return object, nil
}

// decodeObject reads an object that can be stored.
func decodeObject(r *http.Request) (obj.Object, error) {
	decoded, err := decode(r)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(obj.Object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body has no object but %T", decoded))
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
