package binding

import "k8s.io/apimachinery/pkg/util/resourceversion"

// newer reports whether a is a later version than b. Versions that cannot be compared are taken as they come.
func newer(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// older reports whether a is a version before b. Versions that cannot be compared are not.
func older(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
