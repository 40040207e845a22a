package apitest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/obj"
)

// selection is which objects of a kind a list or a watch is about.
type selection struct {
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// selectionOf reads the selectors of a request. It fails where a field is none that the API selects by.
func selectionOf(request Request, options metav1.ListOptions) (selection, error) {
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return selection{}, badRequest(err)
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return selection{}, badRequest(err)
	}
	known := fieldsOf(empty(request.kind()))
	for _, requirement := range byField.Requirements() {
		if !known.Has(requirement.Field) {
			return selection{}, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
	}
	return selection{request.Namespace, byLabel, byField}, nil
}

func (s selection) matches(object obj.Object) bool {
	return (s.namespace == "" || s.namespace == object.GetNamespace()) &&
		s.labels.Matches(labels.Set(object.GetLabels())) && s.fields.Matches(fieldsOf(object))
}

// fieldsOf returns the fields that the API selects by and that matter here.
func fieldsOf(object obj.Object) fields.Set {
	set := fields.Set{"metadata.name": object.GetName()}
	switch object := object.(type) {
	case *corev1.Pod:
		set["metadata.namespace"] = object.Namespace
		set["spec.nodeName"] = object.Spec.NodeName
		set["spec.schedulerName"] = object.Spec.SchedulerName
		set["status.phase"] = string(object.Status.Phase)
	case *corev1.PersistentVolumeClaim:
		set["metadata.namespace"] = object.Namespace
	}
	return set
}

// event returns a change as one sees it who watches a selection: an object that comes to be selected is added, and one that is
// selected no more is deleted. It returns false if there is nothing to see.
func (s selection) event(change change) (watch.Event, bool) {
	was := change.before != nil && s.matches(change.before)
	is := s.matches(change.Object)
	switch {
	case is && (was || change.before == nil || change.Type == watch.Deleted):
		return watch.Event{Type: change.Type, Object: change.Object}, true
	case is:
		return watch.Event{Type: watch.Added, Object: change.Object}, true
	case was:
		last := change.before.DeepCopyObject().(obj.Object)
		last.SetResourceVersion(change.Object.GetResourceVersion())
		return watch.Event{Type: watch.Deleted, Object: last}, true
	}
	return watch.Event{}, false
}
