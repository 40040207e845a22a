package apitest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/obj"
)

// serveObject answers what is about one object, or deletes several.
func (s *Server) serveObject(w http.ResponseWriter, r *http.Request, request Request) {
	op, err := decodeOperation(r, request)
	var object obj.Object
	if err == nil {
		object, err = s.do(r.Context(), op)
	}
	switch {
	case err != nil:
		answerError(w, err)
	case object == nil:
		answer(w, http.StatusOK, success())
	case request.Verb == "create":
		answer(w, http.StatusCreated, typed(object))
	default:
		answer(w, http.StatusOK, typed(object))
	}
}

// decodeOperation reads body and query.
func decodeOperation(r *http.Request, request Request) (operation, error) {
	op := operation{Request: request, dryRun: r.URL.Query()["dryRun"], selected: listOptions(r)}
	switch request.Subresource {
	case "":
	case "status":
		if request.Verb == "create" {
			return op, missing(r.URL.Path)
		}
	case "binding":
		if request.Verb != "create" || request.kind() != obj.KindPod {
			return op, missing(r.URL.Path)
		}
	default:
		return op, missing(r.URL.Path)
	}
	var err error
	switch request.Verb {
	case "create", "update":
		op.sent, err = decode(r)
	case "patch":
		op.patch, err = decodePatch(r, request)
	case "delete", "deletecollection":
		op.options, err = decodeOptions(r)
		op.dryRun = append(op.dryRun, op.options.DryRun...)
	}
	return op, err
}

func decodePatch(r *http.Request, request Request) (clienttesting.PatchActionImpl, error) {
	body, err := io.ReadAll(r.Body)
	options := metav1.PatchOptions{FieldManager: r.URL.Query().Get("fieldManager")}
	if force, err := strconv.ParseBool(r.URL.Query().Get("force")); err == nil {
		options.Force = &force
	}
	kind := types.PatchType(r.Header.Get("Content-Type"))
	return clienttesting.NewPatchActionWithOptions(request.resource(), request.Namespace, request.Name, kind, body, options), err
}

func success() *metav1.Status {
	status := &metav1.Status{Status: metav1.StatusSuccess}
	status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
	status.APIVersion = "v1"
	return status
}

// typed fills in kind and apiVersion.
func typed(object obj.Object) obj.Object {
	if known, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		object.GetObjectKind().SetGroupVersionKind(known[0])
	}
	return object
}

// empty returns an object of a kind that is stored.
func empty(kind obj.Kind) obj.Object {
	object, err := scheme.Scheme.New(resourceOf(kind).GroupVersion().WithKind(string(kind)))
	if err != nil {
		panic(err) // all are in client-go's scheme
	}
	return object.(obj.Object)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// answerError answers with an error of the API; any other breaks the connection, so that the client cannot know what
// became of its request.
func answerError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		panic(http.ErrAbortHandler)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	answer(w, int(status.Code), status)
}
