package dump

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// result is what came of one document.
type result struct {
	Entry
	other    string   // what it is instead, if it is of a kind that nobody asked for
	notes    []string // what of it was passed over
	problems []error
}

// typedAll reads a piece and makes of each document in it an object of its kind, complete and valid.
func (r *reader) typedAll(p piece) []result {
	documents, err := p.open()
	var results []result
	if problems := Unjoin(err); len(problems) > 0 {
		results = append(results, result{problems: problems})
	}
	for _, d := range documents {
		known, ok := kindOf(d.apiVersion, d.kind)
		if !ok {
			results = append(results, result{other: d.apiVersion + " " + d.kind})
			continue
		}
		results = append(results, r.result(d, known))
	}
	return results
}

func (r *reader) result(d document, known kind) result {
	found := result{Entry: Entry{Place: d.Place, Name: d.object()}}
	object, notes, problem := typed(r.scheme, d, known)
	found.notes = notes
	if problem != nil {
		found.problems = []error{problem}
		return found
	}
	if known.namespaced && object.GetNamespace() == "" {
		object.SetNamespace(DefaultNamespace)
	}
	if errs := validate(object); len(errs) > 0 {
		found.problems = []error{invalid(d.Place, d.object(), errs)}
		return found
	}
	found.Object = object
	return found
}

func (r *reader) add(found result, others map[string]int) {
	r.Notes = append(r.Notes, found.notes...)
	r.problems = append(r.problems, found.problems...)
	switch {
	case found.other != "":
		others[found.other]++
	case found.Object == nil, !r.unique(found.Entry, "metadata.name", found.Name):
	case found.Object.GetUID() != "" && !r.unique(found.Entry, "metadata.uid", "uid "+string(found.Object.GetUID())):
	default:
		r.Entries = append(r.Entries, found.Entry)
	}
}

// unique reports whether nothing in the input was called that before.
func (r *reader) unique(e Entry, field, name string) bool {
	first, twice := r.seen[name]
	if twice {
		r.problems = append(r.problems, &Problem{Place: e.Place, Object: e.Name, Field: field, Text: "is already in " + first.String()})
	}
	r.seen[name] = e.Place
	return !twice
}

func (r *reader) noteOthers(file string, others map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r.Notes = append(r.Notes, OneLine(fmt.Sprintf("%s: passed over %s (%d)", file, name, others[name])))
	}
}

// validate is what the API server would say of the object.
func validate(object obj.Object) field.ErrorList {
	errs := bindingtest.Validate(object)
	if object.GetUID() == "" && object.GetResourceVersion() != "" {
		path := field.NewPath("metadata", "resourceVersion")
		errs = append(errs, field.Forbidden(path, "an object without a uid is created, and only the server gives it one"))
	}
	return errs
}
