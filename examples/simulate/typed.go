package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding"
)

// typed is the document as an object of its kind, or nil. Fields that this version of Kubernetes does
// not know are no error, for a dump may come from a newer one, but they may be a misspelling: a note says so.
func (r *reader) typed(d document, known kind) binding.Object {
	gvk := schema.FromAPIVersionAndKind(d.apiVersion, d.kind)
	into := func(content map[string]any) (binding.Object, error) {
		data, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		object := known.empty()
		_, _, err = r.codec.Decode(data, &gvk, object)
		return object, err
	}
	object, err := into(d.content)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, unknown := range strict.Errors() {
			r.notes = append(r.notes, (&problem{place: d.place, object: d.object(), text: "passed over " + unknown.Error()}).Error())
		}
		err = nil
	}
	if err != nil {
		culprit := locate(d.content, func(part map[string]any) error {
			_, err := into(part)
			return err
		})
		r.problems = append(r.problems, &problem{place: d.place, object: d.object(), field: culprit, text: plain(err)})
		return nil
	}
	return object
}
