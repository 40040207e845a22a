package dump

import (
	"errors"
	"fmt"
	"strings"
)

// document is one object of the input, not yet typed.
type document struct {
	Place
	apiVersion string
	kind       string
	content    map[string]any
}

// open returns the object that a value is, or the objects of the list that it is.
func open(at Place, value any) ([]document, error) {
	content, ok := value.(map[string]any)
	if !ok {
		return nil, &Problem{Place: at, Text: "is not an object but " + typeName(value)}
	}
	return openObject(at, content, "", "")
}

// openObject takes apiVersion and kind from the list where the object names neither, for the items of
// a typed list, such as a PersistentVolumeList, need not.
func openObject(at Place, content map[string]any, apiVersion, kind string) ([]document, error) {
	d := document{Place: at, content: content, apiVersion: apiVersion, kind: kind}
	for _, part := range []struct {
		field string
		into  *string
	}{{"apiVersion", &d.apiVersion}, {"kind", &d.kind}} {
		switch value := content[part.field].(type) {
		case string:
			*part.into = value
		case nil:
		default:
			return nil, &Problem{Place: at, Object: d.object(), Field: part.field, Text: "is not a string but " + typeName(value)}
		}
	}
	if d.kind == "" {
		return nil, &Problem{Place: at, Object: d.object(), Field: "kind", Text: "Required value"}
	}
	if d.apiVersion == "" {
		return nil, &Problem{Place: at, Object: d.object(), Field: "apiVersion", Text: "Required value"}
	}
	itemKind, isList := strings.CutSuffix(d.kind, "List")
	if !isList {
		return []document{d}, nil
	}
	switch items := content["items"].(type) {
	case []any:
		return d.openItems(items, itemKind)
	case nil:
		return nil, nil
	}
	return nil, &Problem{Place: at, Object: d.kind, Field: "items", Text: "is not a list but " + typeName(content["items"])}
}

func (d document) openItems(items []any, kind string) ([]document, error) {
	apiVersion := d.apiVersion
	if kind == "" { // a v1 List holds anything; its items say what they are
		apiVersion = ""
	}
	var documents []document
	var problems []error
	for i, item := range items {
		at := d.Place
		at.item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", d.item, i), ".")
		content, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, &Problem{Place: at, Text: "is not an object but " + typeName(item)})
			continue
		}
		found, err := openObject(at, content, apiVersion, kind)
		documents = append(documents, found...)
		problems = append(problems, err)
	}
	return documents, errors.Join(problems...)
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}
