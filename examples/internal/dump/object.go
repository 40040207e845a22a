package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// DefaultNamespace is the namespace of objects that name none.
const DefaultNamespace = "default"

// kind is one of the kinds of objects that the programs work on.
type kind struct {
	short      string // as kubectl names it
	namespaced bool
	empty      func() obj.Object
}

// kindOf looks a kind up; false: it is passed over.
func kindOf(apiVersion, name string) (kind, bool) {
	switch apiVersion + " " + name {
	case "storage.k8s.io/v1 StorageClass":
		return kind{short: "sc", empty: func() obj.Object { return &storagev1.StorageClass{} }}, true
	case "storage.k8s.io/v1 CSINode":
		return kind{short: "csinode", empty: func() obj.Object { return &storagev1.CSINode{} }}, true
	case "storage.k8s.io/v1 VolumeAttachment":
		return kind{short: "volumeattachment", empty: func() obj.Object { return &storagev1.VolumeAttachment{} }}, true
	case "v1 Node":
		return kind{short: "node", empty: func() obj.Object { return &corev1.Node{} }}, true
	case "v1 PersistentVolume":
		return kind{short: "pv", empty: func() obj.Object { return &corev1.PersistentVolume{} }}, true
	case "v1 PersistentVolumeClaim":
		return kind{short: "pvc", namespaced: true, empty: func() obj.Object { return &corev1.PersistentVolumeClaim{} }}, true
	case "v1 Pod":
		return kind{short: "pod", namespaced: true, empty: func() obj.Object { return &corev1.Pod{} }}, true
	}
	return kind{}, false
}

// name names an object of the kind as kubectl does: "pvc/default/data".
func (k kind) name(namespace, name string) string {
	name = cmp.Or(name, "(no name)")
	if !k.namespaced {
		return k.short + "/" + name
	}
	return k.short + "/" + cmp.Or(namespace, DefaultNamespace) + "/" + name
}

// object names what a document holds, as far as it says.
func (d document) object() string {
	metadata, _ := d.content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	known, ok := kindOf(d.apiVersion, d.kind)
	if !ok {
		known = kind{short: cmp.Or(d.kind, "(no kind)")}
	}
	return known.name(namespace, name)
}

// validate returns what the API server would find wrong with the object.
func validate(object obj.Object) field.ErrorList {
	errs := bindingtest.Validate(object)
	if object.GetUID() == "" && object.GetResourceVersion() != "" {
		path := field.NewPath("metadata", "resourceVersion")
		errs = append(errs, field.Forbidden(path, "an object without a uid is created, and only the server gives it one"))
	}
	return errs
}

// typed returns the document as an object of its kind. Fields that this version of Kubernetes does
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
	if path := longExponent(d.content, nil, false); path != nil {
		return nil, notes, &Problem{Place: d.Place, Object: d.object(), Field: path.String(), Text: "the exponent of the quantity is too long"}
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

// direct decodes an item of a list that says at its beginning what it is, as kubectl prints them, at once into its type. It returns
// nil for all else, and for what is to be looked at part by part, to tell what is wrong with it.
func (r *reader) direct(item []byte) (obj.Object, kind) {
	apiVersion, name := beginning(item)
	known, ok := kindOf(apiVersion, name)
	if !ok || mayHaveLongExponent(item) {
		return nil, known
	}
	object := known.empty()
	if _, _, err := newCodec(r.scheme, schema.FromAPIVersionAndKind(apiVersion, name)).Decode(item, nil, object); err != nil {
		return nil, known
	}
	return object, known
}

// beginning returns apiVersion and kind of an object in JSON that begins with these, in this order.
func beginning(text []byte) (apiVersion, kind string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var tokens [5]json.Token
	for i := range tokens {
		var err error
		if tokens[i], err = decoder.Token(); err != nil {
			return "", ""
		}
	}
	if tokens[0] != json.Delim('{') || tokens[1] != "apiVersion" || tokens[3] != "kind" {
		return "", ""
	}
	apiVersion, _ = tokens[2].(string)
	kind, _ = tokens[4].(string)
	return apiVersion, kind
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	return scheme
}

// newCodec decodes JSON of a kind that is known; it reports unknown fields as a strict decoding error beside the object.
func newCodec(scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Decoder {
	return jsonserializer.NewSerializerWithOptions(knownKind(kind), scheme, scheme, jsonserializer.SerializerOptions{Strict: true})
}

// knownKind spares the codec from reading the text once more, to find its kind.
type knownKind schema.GroupVersionKind

func (k knownKind) Interpret([]byte) (*schema.GroupVersionKind, error) {
	kind := schema.GroupVersionKind(k)
	return &kind, nil
}

// quantities are the fields that have quantities, alone or by name.
var quantities = map[string]bool{
	"allocatable": true, "allocatedResources": true, "capacity": true, "divisor": true, "limits": true, "overhead": true,
	"requests": true, "sizeLimit": true,
}

// mayHaveLongExponent reports whether a text in JSON has anything like e-1000, or an escape that may stand for a part of it.
func mayHaveLongExponent(text []byte) bool {
	if bytes.Contains(text, []byte(`\u`)) {
		return true
	}
	for i, c := range text {
		if c == '-' && i > 0 && exponent.Match(text[i-1:min(i+5, len(text))]) { // e, the sign, and four digits
			return true
		}
	}
	return false
}

var exponent = regexp.MustCompile(`[eE]-[0-9]{4,}$`)

// longExponent returns the path of the first quantity that nobody can read in a minute, such as 1e-10000000; nil if there is
// none. The API server rounds such a quantity up before it stores it.
func longExponent(value any, path *field.Path, quantity bool) *field.Path {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if found := longExponent(value[key], child(path, key), quantity || quantities[key]); found != nil {
				return found
			}
		}
	case []any:
		for i, item := range value {
			if found := longExponent(item, path.Index(i), quantity); found != nil {
				return found
			}
		}
	case string:
		if quantity && exponent.MatchString(value) {
			return path
		}
	case json.Number:
		if exponent.MatchString(value.String()) {
			return path
		}
	}
	return nil
}

// locate names the first field of the content that does not decode, for not every error of decoding
// does: it tries each part alone, going down into the part that fails.
func locate(content map[string]any, decodes func(map[string]any) error) string {
	fails := func(part any) bool {
		err := decodes(part.(map[string]any))
		return err != nil && !runtime.IsStrictDecodingError(err)
	}
	if path := descend(content, nil, fails); path != nil {
		return path.String()
	}
	return ""
}

// descend follows the failure into value, which is at path. fails reports whether the whole fails with
// nothing in it but the given value at path.
func descend(value any, path *field.Path, fails func(any) bool) *field.Path {
	switch value := value.(type) {
	case map[string]any:
		if fails(map[string]any{}) {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			alone := func(part any) bool { return fails(map[string]any{key: part}) }
			if alone(value[key]) {
				return descend(value[key], child(path, key), alone)
			}
		}
	case []any:
		if fails([]any{}) {
			return path
		}
		for i, item := range value {
			alone := func(part any) bool { return fails([]any{part}) }
			if alone(item) {
				return descend(item, path.Index(i), alone)
			}
		}
	}
	return path
}

func child(path *field.Path, key string) *field.Path {
	switch {
	case path == nil:
		return field.NewPath(key)
	case strings.ContainsAny(key, "./"):
		return path.Key(key)
	}
	return path.Child(key)
}

// plain says what is wrong without naming Go types.
func plain(err error) string {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return "has the wrong type: " + wrong.Value
	}
	return err.Error()
}
