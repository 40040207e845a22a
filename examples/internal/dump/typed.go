package dump

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/obj"
)

// typed is the document as an object of its kind. Fields that this version of Kubernetes does
// not know are no error, for a dump may come from a newer one, but they may be a misspelling: a note says so.
func typed(scheme *runtime.Scheme, d document, known kind) (object obj.Object, notes []string, problem error) {
	codec := newCodec(scheme, schema.FromAPIVersionAndKind(d.apiVersion, d.kind))
	into := func(content map[string]any) (obj.Object, error) {
		data, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		object := known.empty()
		_, _, err = codec.Decode(data, nil, object)
		return object, err
	}
	object, err := into(d.content)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, unknown := range strict.Errors() {
			notes = append(notes, (&Problem{Place: d.Place, Object: d.object(), Text: "passed over " + unknown.Error()}).Error())
		}
		err = nil
	}
	if err != nil {
		culprit := locate(d.content, func(part map[string]any) error {
			_, err := into(part)
			return err
		})
		return nil, notes, &Problem{Place: d.Place, Object: d.object(), Field: culprit, Text: plain(err)}
	}
	return object, notes, nil
}
