package main

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// encode writes the object as JSON or YAML.
func encode(w io.Writer, object runtime.Object, format format) error {
	options := json.SerializerOptions{Yaml: format == formatYAML, Pretty: format == formatJSON}
	err := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, options).Encode(object, w)
	if err == nil && format == formatJSON {
		_, err = io.WriteString(w, "\n")
	}
	return err
}
