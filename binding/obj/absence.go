package obj

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsAbsent reports whether the error of a live read proves that the object does not exist: a NotFound of the API server
// itself, which names kind and object. A proxy's 404 proves nothing. client-go makes the same error of it, kind and name
// filled in, but with a cause. A list is never absent.
func IsAbsent(err error, key Key) bool {
	status, ok := notFound(err)
	if !ok || status.Details == nil || status.Details.Group != corev1.GroupName || status.Details.Name != key.Name || key.IsList() {
		return false
	}
	kind := strings.TrimSuffix(strings.ToLower(status.Details.Kind), "s") // the server names the resource, in the plural
	byProxy := slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
	return !byProxy && kind == strings.ToLower(string(key.Kind))
}

func notFound(err error) (status metav1.Status, ok bool) {
	var given apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &given) {
		return metav1.Status{}, false
	}
	return given.Status(), true
}

// AbsentAsOf returns as of which resourceVersion an object does not exist, from the error that Confirm made; "" from any other. A
// NotFound alone does not say when it was true, and what keeps it and answers in the server's place may repeat it for long.
func AbsentAsOf(err error) string {
	status, _ := notFound(err)
	return status.ResourceVersion
}

// Confirm returns the object of the key as a live list has it, which was made after a read of it had failed with NotFound: the list
// may be one of that name alone. If it is not in the list, Confirm returns the error of the read with the list's resourceVersion.
// An error of the list, or a list that is not whole, proves nothing and is returned. One whose resourceVersion cannot be compared, as that
// of a fake server, confirms nothing: the error of the read is returned as it was.
func Confirm[T Object](key Key, notFound error, list metav1.ListInterface, items []T, err error) (T, error) {
	var none T
	if err != nil {
		return none, fmt.Errorf("%v; the list that was to confirm that failed: %w", notFound, err)
	}
	if err := CheckList(key, list); err != nil {
		return none, err
	}
	for _, item := range items {
		if item.GetNamespace() == key.Namespace && item.GetName() == key.Name {
			return item, nil
		}
	}
	version := list.GetResourceVersion()
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return none, notFound
	}
	return none, absentAsOf(notFound, version)
}

func absentAsOf(err error, version string) error {
	status, _ := notFound(err)
	status.ResourceVersion = version
	return &apierrors.StatusError{ErrStatus: status}
}
