package bindingtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/obj"
)

// Diff returns what differs between two states of an object, in one line and in a stable order:
//
//	spec.claimRef={default/data uid-3} +annotation pv.kubernetes.io/bound-by-controller
//
// A field is shown with its new value, "-" before it says that it went. What changes with every write
// (resourceVersion, managedFields, times) is left out. Empty: no difference worth showing.
func Diff(before, after obj.Object) string {
	old, now := leaves(before), leaves(after)
	names := maps.Clone(old)
	maps.Copy(names, now)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := old[name]
		is, has := now[name]
		if had != has || was != is {
			parts = append(parts, part(name, is, had, has))
		}
	}
	slices.SortStableFunc(parts, func(a, b string) int { return rank(a) - rank(b) })
	return strings.Join(parts, " ")
}

// part shows one leaf. Those of a set (annotations, labels, finalizers) come and go by name.
func part(name, value string, had, has bool) string {
	member := strings.Contains(name, " ") || name == deletionTimestamp
	switch {
	case !has:
		return "-" + name
	case !member:
		return name + "=" + value
	case had:
		return name + "=" + value
	case value == "" || value == `""` || value == "yes":
		return "+" + name
	}
	return "+" + name + "=" + value
}

// rank puts spec before status before metadata.
func rank(part string) int {
	return slices.IndexFunc([]string{"spec", "status", ""}, func(prefix string) bool {
		return strings.HasPrefix(strings.TrimPrefix(part, "-"), prefix)
	})
}

const deletionTimestamp = "deletionTimestamp"

// leaves returns the fields of an object by path, and the members of its sets by name.
func leaves(object obj.Object) map[string]string {
	found := map[string]string{}
	if object == nil {
		return found
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return map[string]string{"unreadable": err.Error()}
	}
	delete(content, "metadata")
	flatten(found, "", content)
	delete(found, "status.lastPhaseTransitionTime")
	for name, value := range object.GetAnnotations() {
		found["annotation "+name] = leaf(value)
	}
	for name, value := range object.GetLabels() {
		found["label "+name] = leaf(value)
	}
	for _, name := range object.GetFinalizers() {
		found["finalizer "+name] = ""
	}
	if object.GetDeletionTimestamp() != nil {
		found[deletionTimestamp] = ""
	}
	return found
}

func flatten(found map[string]string, path string, value any) {
	fields, ok := value.(map[string]any)
	switch {
	case path == "spec.claimRef":
		found[path] = claimRef(fields)
	case !ok:
		found[path] = leaf(value)
	default:
		for name, field := range fields {
			flatten(found, strings.TrimPrefix(path+"."+name, "."), field)
		}
	}
}

func claimRef(ref map[string]any) string {
	text := fmt.Sprintf("{%v/%v", ref["namespace"], ref["name"])
	if uid, ok := ref["uid"]; ok {
		text += fmt.Sprintf(" %v", uid)
	}
	return text + "}"
}

func leaf(value any) string {
	switch v := value.(type) {
	case string:
		if v == "" || strings.ContainsAny(v, " \n\"") {
			return fmt.Sprintf("%q", v)
		}
		return v
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = leaf(v[i])
		}
		return "[" + strings.Join(items, " ") + "]"
	case map[string]any:
		text, _ := json.Marshal(v) // came from JSON
		return string(text)
	}
	return fmt.Sprint(value)
}
