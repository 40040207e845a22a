package dump

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// locate names the first field of the content that does not decode, for not every error of decoding
// does: it tries each part alone, going down into the part that fails.
func locate(content map[string]any, decodes func(map[string]any) error) string {
	fails := func(part map[string]any) bool {
		err := decodes(part)
		return err != nil && !runtime.IsStrictDecodingError(err)
	}
	if path := descend(content, nil, func(part any) bool { return fails(part.(map[string]any)) }); path != nil {
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
