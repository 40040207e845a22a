package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

// input is what a simulation starts from.
type input struct {
	entries []entry
	notes   []string // what was passed over, one line each
}

// entry is an object of the input and where it stands there.
type entry struct {
	place
	name   string // as kubectl would name it
	object binding.Object
}

// readAll reads the files, "-" being stdin. Its error joins one error for each thing that is wrong.
func readAll(files []string, stdin io.Reader) (input, error) {
	r := reader{codec: newCodec(), seen: map[string]place{}}
	for _, file := range files {
		r.readFile(file, stdin)
	}
	return r.input, errors.Join(r.problems...)
}

// reader gathers an input.
type reader struct {
	input
	codec    runtime.Decoder
	seen     map[string]place // the names and uids so far
	problems []error
}

func (r *reader) readFile(file string, stdin io.Reader) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			r.problems = append(r.problems, &usageError{err})
			return
		}
		defer opened.Close()
		stdin = opened
	}
	r.read(file, stdin)
}

func (r *reader) read(file string, from io.Reader) {
	documents, err := decode(file, from)
	before := len(r.problems)
	defer func() { inOrder(r.problems[before:]) }()
	r.problems = append(r.problems, unjoin(err)...)
	others := map[string]int{}
	for _, d := range documents {
		known, ok := kindOf(d.apiVersion, d.kind)
		if !ok {
			others[d.apiVersion+" "+d.kind]++
			continue
		}
		if object := r.object(d, known); object != nil {
			r.entries = append(r.entries, entry{d.place, d.object(), object})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r.notes = append(r.notes, oneLine(fmt.Sprintf("%s: passed over %s (%d)", file, name, others[name])))
	}
}

// object is the object of a document, complete and valid, or nil.
func (r *reader) object(d document, known kind) binding.Object {
	object := r.typed(d, known)
	if object == nil {
		return nil
	}
	if known.namespaced && object.GetNamespace() == "" {
		object.SetNamespace(defaultNamespace)
	}
	if errs := validate(object); len(errs) > 0 {
		r.problems = append(r.problems, invalid(d.place, d.object(), errs))
		return nil
	}
	if !r.unique(d, "metadata.name", d.object()) {
		return nil
	}
	if uid := string(object.GetUID()); uid != "" && !r.unique(d, "metadata.uid", "uid "+uid) {
		return nil
	}
	return object
}

// unique reports whether nothing in the input was called that before.
func (r *reader) unique(d document, field, name string) bool {
	first, twice := r.seen[name]
	if twice {
		r.problems = append(r.problems, &problem{place: d.place, object: d.object(), field: field, text: "is already in " + first.String()})
	}
	r.seen[name] = d.place
	return !twice
}

// validate is what the API server would say of the object.
func validate(object binding.Object) field.ErrorList {
	errs := bindingtest.Validate(object)
	if object.GetUID() == "" && object.GetResourceVersion() != "" {
		path := field.NewPath("metadata", "resourceVersion")
		errs = append(errs, field.Forbidden(path, "an object without a uid is created, and only the server gives it one"))
	}
	return errs
}
