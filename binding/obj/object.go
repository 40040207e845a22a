package obj

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is any Kubernetes API object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Newer reports whether a is a later version than b. It also reports true where the versions cannot be compared.
func Newer(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// Older reports whether a is a version before b. It reports false where the versions cannot be compared.
func Older(a, b Object) bool { return OlderThan(a, b.GetResourceVersion()) }

// OlderThan reports whether an object has a version before another one. It reports false where they cannot be compared.
func OlderThan(object Object, version string) bool {
	return IsBefore(object.GetResourceVersion(), version)
}

// IsBefore reports whether a resourceVersion is before another one. It reports false where they cannot be compared.
func IsBefore(version, another string) bool {
	order, err := resourceversion.CompareResourceVersion(version, another)
	return err == nil && order < 0
}

// CheckReply returns an error unless the object that a server has replied is the one of the key: it has that namespace and name,
// a UID and a resourceVersion, and what the API server lets no claim and no volume be without. Where a proxy answers in the
// server's place with success and {}, null, a Status, another kind or bare metadata, client-go returns an object that lacks them
// and no error. That proves nothing, and least of all that the object does not exist, or is another of its name.
func CheckReply(key Key, object Object) error {
	if object.GetNamespace() != key.Namespace || object.GetName() != key.Name || object.GetUID() == "" || object.GetResourceVersion() == "" {
		return fmt.Errorf("the reply is not %s, but has namespace %q, name %q, UID %q and resourceVersion %q: something else than the API server may have answered",
			key, object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion())
	}
	return checkWhole(key, object)
}

// CheckList is CheckReply for a list: one without a resourceVersion is no server's, and one that goes on, as its metadata.continue
// says, is not all that there is. Neither proves that there is nothing.
func CheckList(key Key, list metav1.ListInterface) error {
	switch {
	case list.GetResourceVersion() == "":
		return fmt.Errorf("the reply is no list of %s, for it has no resourceVersion: something else than the API server may have answered", key)
	case list.GetContinue() != "":
		return fmt.Errorf("the list of %s is not whole, though no part of it was asked for: something else than the API server may have answered", key)
	}
	return nil
}

// CheckItem is CheckReply for one of the objects in the list of a key. Of bare metadata nobody can tell what it uses.
func CheckItem(key Key, item Object) error {
	elsewhere := item.GetNamespace() != key.Namespace
	if key == ClaimsKey() { // which are of all namespaces
		elsewhere = item.GetNamespace() == ""
	}
	if elsewhere || item.GetName() == "" {
		return fmt.Errorf("the list of %s has an object with namespace %q and name %q: something else than the API server may have answered",
			key, item.GetNamespace(), item.GetName())
	}
	return checkWhole(key, item)
}

// checkWhole returns an error for an object in a reply to the key that lacks what the API server stores no such object without.
func checkWhole(key Key, object Object) error {
	field, lacks := "spec", false
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		field, lacks = "spec.accessModes", len(object.Spec.AccessModes) == 0
	case *corev1.PersistentVolume:
		field, lacks = "spec.accessModes", len(object.Spec.AccessModes) == 0
	case *corev1.Pod: // by its defaults alone it has one
		lacks = reflect.ValueOf(&object.Spec).Elem().IsZero()
	case *storagev1.VolumeAttachment:
		field, lacks = "spec.source", object.Spec.Source == storagev1.VolumeAttachmentSource{}
	}
	if !lacks {
		return nil
	}
	return fmt.Errorf("the reply to %s is not whole: %q has no %s, without which the API server stores none; something else may have answered", key, object.GetName(), field)
}

// InvalidError reports an object that no decision can be made on. It concerns that object alone, and only a change of the
// object mends it (X7).
type InvalidError struct {
	Object  string // such as "pvc/default/data" or "storageclass/fast"
	Field   string // such as "spec.selector"
	Problem string
}

// Error returns object, field and problem in one line.
func (e *InvalidError) Error() string { return e.Object + ": " + e.Field + ": " + e.Problem }
