package testkit

import (
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// ErrConnection says that a call did not arrive, or its answer did not.
var ErrConnection = errors.New("connection lost")

// ErrNotFound says that an object of no name does not exist.
var ErrNotFound = apierrors.NewNotFound(schema.GroupResource{}, "it")

// ErrExists says that an object of that name exists.
var ErrExists = apierrors.NewAlreadyExists(schema.GroupResource{}, "it")

// ErrConflict says that the object was changed by somebody else.
var ErrConflict = apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("changed"))

// ErrForbidden says that the caller has no right to do that.
var ErrForbidden = apierrors.NewForbidden(schema.GroupResource{}, "it", errors.New("not allowed"))

// ErrBroken is what a hook fails with.
var ErrBroken = errors.New("the disk is broken")

// NotFoundError returns how the server says that an object does not exist.
func NotFoundError(key obj.Key) *apierrors.StatusError {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(string(key.Kind)) + "s"}, key.Name)
}

// AbsentAsOf returns what a Client makes of the API server's NotFound and a list of that resourceVersion.
func AbsentAsOf(key obj.Key, version string) error {
	list := &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	_, err := obj.Confirm[*corev1.PersistentVolumeClaim](key, NotFoundError(key), list, nil, nil)
	return err
}

// ProxyError returns what client-go makes of a proxy's 404.
func ProxyError(key obj.Key) *apierrors.StatusError {
	resource := schema.GroupResource{Resource: NotFoundError(key).Status().Details.Kind}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, key.Name, "404 page not found", 0, true)
}

// BareObject returns the metadata of another claim or volume of that name, and of a version that is later than all others: success,
// as client-go makes it of what is not the whole object.
func BareObject(key obj.Key) obj.Object {
	metadata := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-of-nobody", ResourceVersion: "999999999"}
	if key.Kind == obj.KindVolume {
		return &corev1.PersistentVolume{ObjectMeta: metadata}
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: metadata}
}

// Meaning returns an error of a hook with that meaning.
func Meaning(meaning hooks.Meaning) error {
	return &hooks.Error{Meaning: meaning, Err: ErrBroken}
}

// InProgress returns the error of a hook that is not done yet.
func InProgress(after time.Duration) error {
	return &hooks.Error{Meaning: hooks.InProgress, After: after}
}
