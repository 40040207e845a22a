package apitest

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pvbind/pvbind/binding/obj"
)

// serveObject answers what is about one object, through the client.
func (s *Server) serveObject(w http.ResponseWriter, r *http.Request, request Request) {
	object, err := s.serve(r, request)
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

func (s *Server) serve(r *http.Request, request Request) (obj.Object, error) {
	switch request.Verb {
	case "get":
		return s.Client.Get(r.Context(), request.key())
	case "delete":
		options, err := decodeOptions(r)
		if err != nil {
			return nil, err
		}
		return nil, s.Client.Delete(r.Context(), request.key(), options)
	}
	object, err := decodeObject(r)
	switch {
	case err != nil:
		return nil, err
	case request.Verb == "create":
		return s.Client.Create(r.Context(), object)
	case request.Verb == "update" && request.Subresource == "status":
		return s.Client.UpdateStatus(r.Context(), object)
	case request.Verb == "update" && request.Subresource == "":
		return s.Client.Update(r.Context(), object)
	}
	return nil, missing(r.URL.Path)
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
