package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// What a node affinity is looked up by, and whether it has to be checked then.
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
	zone, host := label{"zone", "a"}, label{corev1.LabelHostname, "h"}
	sure := func(labels ...label) places { return places{labels, true} }
	perhaps := func(labels ...label) places { return places{labels, false} }
	region := in(corev1.LabelTopologyRegion, "r")
	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  places
	}{
		"one value":                   {[]corev1.NodeSelectorTerm{term(in("zone", "a"))}, sure(zone)},
		"several values":              {[]corev1.NodeSelectorTerm{term(in("zone", "a", "b", "a"))}, sure(zone, label{"zone", "b"})},
		"a driver's own host":         {[]corev1.NodeSelectorTerm{term(in(corev1.LabelTopologyZone, "z"), in("topology.topolvm.io/node", "n"))}, perhaps(label{"topology.topolvm.io/node", "n"})},
		"an architecture beside it":   {[]corev1.NodeSelectorTerm{term(in(corev1.LabelArchStable, "amd64"), in(corev1.LabelTopologyRegion, "r"))}, perhaps(label{corev1.LabelTopologyRegion, "r"})},
		"several terms":               {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("zone", "b", "a"))}, sure(zone, label{"zone", "b"})},
		"too many values":             {[]corev1.NodeSelectorTerm{term(in("zone", many...))}, places{}},
		"too many values in all":      {[]corev1.NodeSelectorTerm{term(in("zone", many[1:]...)), term(in("zone", "a"))}, places{}},
		"no terms":                    {nil, places{}},
		"terms of different labels":   {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("rack", "b"))}, places{}},
		"a label that all terms have": {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("rack", "b")), term(in("rack", "c"))}, perhaps(label{"rack", "b"}, label{"rack", "c"})},
		"a region beside a zone":      {[]corev1.NodeSelectorTerm{term(region, in("zone", "a"))}, perhaps(zone)},
		"a host beside a zone":        {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in(corev1.LabelHostname, "h"))}, perhaps(host)},
		"a host of several":           {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in(corev1.LabelHostname, "h", "i"))}, perhaps(host, label{corev1.LabelHostname, "i"})},
		"fewer values":                {[]corev1.NodeSelectorTerm{term(in("rack", "a", "b"), in("zone", "a"))}, perhaps(zone)},
		"as many values":              {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("rack", "b"))}, perhaps(label{"rack", "b"})},
		"a label and more":            {[]corev1.NodeSelectorTerm{term(exists, in("rack", "b"))}, perhaps(label{"rack", "b"})},
		"a label twice":               {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("zone", "b"))}, perhaps(zone)},
		"an empty term":               {[]corev1.NodeSelectorTerm{term()}, places{}},
		"an empty term beside one":    {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term()}, places{}},
		"another operator":            {[]corev1.NodeSelectorTerm{term(exists)}, places{}},
		"a field":                     {[]corev1.NodeSelectorTerm{withField}, perhaps(zone)},
		"no values":                   {[]corev1.NodeSelectorTerm{term(in("zone"))}, places{}},
		"a malformed value":           {[]corev1.NodeSelectorTerm{term(in("zone", "a", "no value!"))}, perhaps(zone, label{"zone", "no value!"})},
		"a malformed key":             {[]corev1.NodeSelectorTerm{term(in("no key!", "a"))}, perhaps(label{"no key!", "a"})},
	} {
		assert.Equal(t, c.want, placesOf(&corev1.NodeSelector{NodeSelectorTerms: c.terms}), name)
	}
	assert.Equal(t, places{}, placesOf(nil))
}
