package obj

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// InvalidError is an object that no decision can be made on (X7). It concerns that object alone, and
// nothing but a change of it mends it.
type InvalidError struct {
	Object  string // such as "pvc/default/data" or "storageclass/fast"
	Field   string // such as "spec.selector"
	Problem string
}

func (e *InvalidError) Error() string { return e.Object + ": " + e.Field + ": " + e.Problem }

// Newer reports whether a is a later version than b. Versions that cannot be compared are taken as they come.
func Newer(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// Older reports whether a is a version before b. Versions that cannot be compared are not.
func Older(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
