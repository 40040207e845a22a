package binding

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Only a node affinity of the usual shape is looked up; any other has to be checked.
func TestPlaces(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	exists := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpExists}
	term := func(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: expressions}
	}
	withField := term(in("zone", "a"))
	withField.MatchFields = []corev1.NodeSelectorRequirement{in("metadata.name", "node-1")}
	var many []string
	for i := range maxPlaces + 1 {
		many = append(many, fmt.Sprint(i))
	}
	a, b := label{"zone", "a"}, label{"zone", "b"}
	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  []label
	}{
		"one value":         {[]corev1.NodeSelectorTerm{term(in("zone", "a"))}, []label{a}},
		"several values":    {[]corev1.NodeSelectorTerm{term(in("zone", "a", "b", "a"))}, []label{a, b}},
		"too many values":   {[]corev1.NodeSelectorTerm{term(in("zone", many...))}, nil},
		"no terms":          {nil, nil},
		"two terms":         {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("zone", "b"))}, nil},
		"two labels":        {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("host", "b"))}, nil},
		"an empty term":     {[]corev1.NodeSelectorTerm{term()}, nil},
		"another operator":  {[]corev1.NodeSelectorTerm{term(exists)}, nil},
		"a field":           {[]corev1.NodeSelectorTerm{withField}, nil},
		"no values":         {[]corev1.NodeSelectorTerm{term(in("zone"))}, nil},
		"a malformed value": {[]corev1.NodeSelectorTerm{term(in("zone", "a", "no value!"))}, nil},
		"a malformed key":   {[]corev1.NodeSelectorTerm{term(in("no key!", "a"))}, nil},
	} {
		assert.Equal(t, c.want, placesOf(&corev1.NodeSelector{NodeSelectorTerms: c.terms}), name)
	}
	assert.Nil(t, placesOf(nil))
}
