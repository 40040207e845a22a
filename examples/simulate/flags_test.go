package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	pvc := target{kind: "pvc", namespace: "default", name: "a"}
	for name, c := range map[string]struct {
		args []string
		want options
	}{
		"nothing":              {nil, options{format: formatTable}},
		"files":                {[]string{"a", "-", "b"}, options{format: formatTable, files: []string{"a", "-", "b"}}},
		"flags first":          {[]string{"-o", "json", "-trace", "a"}, options{format: formatJSON, trace: true, files: []string{"a"}}},
		"flags last":           {[]string{"a", "b", "-o=yaml"}, options{format: formatYAML, files: []string{"a", "b"}}},
		"flags between":        {[]string{"a", "--trace", "b"}, options{format: formatTable, trace: true, files: []string{"a", "b"}}},
		"files behind --":      {[]string{"-trace", "--", "-o", "a"}, options{format: formatTable, trace: true, files: []string{"-o", "a"}}},
		"a file, then --":      {[]string{"a", "--", "-trace"}, options{format: formatTable, files: []string{"a", "-trace"}}},
		"deletes in order":     {[]string{"-delete", "pvc/a", "f", "-delete", "pv/a"}, options{format: formatTable, deletes: []target{pvc, {kind: "pv", name: "a"}}, files: []string{"f"}}},
		"the last format wins": {[]string{"-o", "json", "-o", "table"}, options{format: formatTable}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.args)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag":       {"-x"},
		"an unknown flag later": {"a", "-x"},
		"an unknown format":     {"-o", "wide"},
		"an empty format":       {"-o", ""},
		"a format left out":     {"a", "-o"},
		"a bad delete":          {"-delete", "x", "a"},
		"a delete left out":     {"a", "-delete"},
		"a delete of nothing":   {"-delete", "pvc/a"},
		"a trace of what":       {"-trace=often", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(args)
			assert.Error(t, err)
		})
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"pv/a": "pv/a", "PersistentVolume/a": "pv/a", "persistentvolumes/a": "pv/a",
		"pvc/a": "pvc/default/a", "pvc/ns/a": "pvc/ns/a", "PersistentVolumeClaim/a": "pvc/default/a", "persistentvolumeclaims/ns/a": "pvc/ns/a",
		"pod/a": "pod/default/a", "po/ns/a": "pod/ns/a", "Pods/ns/a": "pod/ns/a",
	} {
		got, err := parseTarget(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.String(), text)
	}
	for _, text := range []string{"", "pv", "pv/", "/a", "pv//a", "pvc//a", "pvc/ns/", "pv/ns/a", "pvc/ns/a/b", "node/a", "sc/a", "configmap/a"} {
		_, err := parseTarget(text)
		assert.Error(t, err, text)
	}
}
