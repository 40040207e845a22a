package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// What a node affinity is looked up by, and whether it has to be checked then.
func TestTopology(t *testing.T) {
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
	for i := range maxTopologyLabels + 1 {
		many = append(many, fmt.Sprint(i))
	}
	zone, host := label{"zone", "a"}, label{corev1.LabelHostname, "h"}
	exact := func(labels ...label) topology { return topology{labels, true} }
	candidate := func(labels ...label) topology { return topology{labels, false} }
	region := in(corev1.LabelTopologyRegion, "r")
	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  topology
	}{
		"one value":                   {[]corev1.NodeSelectorTerm{term(in("zone", "a"))}, exact(zone)},
		"several values":              {[]corev1.NodeSelectorTerm{term(in("zone", "a", "b", "a"))}, exact(zone, label{"zone", "b"})},
		"a driver's own host":         {[]corev1.NodeSelectorTerm{term(in(corev1.LabelTopologyZone, "z"), in("topology.topolvm.io/node", "n"))}, candidate(label{"topology.topolvm.io/node", "n"})},
		"an architecture beside it":   {[]corev1.NodeSelectorTerm{term(in(corev1.LabelArchStable, "amd64"), in(corev1.LabelTopologyRegion, "r"))}, candidate(label{corev1.LabelTopologyRegion, "r"})},
		"several terms":               {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("zone", "b", "a"))}, exact(zone, label{"zone", "b"})},
		"too many values":             {[]corev1.NodeSelectorTerm{term(in("zone", many...))}, topology{}},
		"too many values in all":      {[]corev1.NodeSelectorTerm{term(in("zone", many[1:]...)), term(in("zone", "a"))}, topology{}},
		"no terms":                    {nil, topology{}},
		"terms of different labels":   {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("rack", "b"))}, topology{}},
		"a label that all terms have": {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("rack", "b")), term(in("rack", "c"))}, candidate(label{"rack", "b"}, label{"rack", "c"})},
		"a region beside a zone":      {[]corev1.NodeSelectorTerm{term(region, in("zone", "a"))}, candidate(zone)},
		"a host beside a zone":        {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in(corev1.LabelHostname, "h"))}, candidate(host)},
		"a host of several":           {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in(corev1.LabelHostname, "h", "i"))}, candidate(host, label{corev1.LabelHostname, "i"})},
		"fewer values":                {[]corev1.NodeSelectorTerm{term(in("rack", "a", "b"), in("zone", "a"))}, candidate(zone)},
		"as many values":              {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("rack", "b"))}, candidate(label{"rack", "b"})},
		"a label and more":            {[]corev1.NodeSelectorTerm{term(exists, in("rack", "b"))}, candidate(label{"rack", "b"})},
		"a label twice":               {[]corev1.NodeSelectorTerm{term(in("zone", "a"), in("zone", "b"))}, candidate(zone)},
		"an empty term":               {[]corev1.NodeSelectorTerm{term()}, topology{}},
		"an empty term beside one":    {[]corev1.NodeSelectorTerm{term(in("zone", "a")), term()}, topology{}},
		"another operator":            {[]corev1.NodeSelectorTerm{term(exists)}, topology{}},
		"a field":                     {[]corev1.NodeSelectorTerm{withField}, candidate(zone)},
		"no values":                   {[]corev1.NodeSelectorTerm{term(in("zone"))}, topology{}},
		"a malformed value":           {[]corev1.NodeSelectorTerm{term(in("zone", "a", "no value!"))}, candidate(zone, label{"zone", "no value!"})},
		"a malformed key":             {[]corev1.NodeSelectorTerm{term(in("no key!", "a"))}, candidate(label{"no key!", "a"})},
	} {
		assert.Equal(t, c.want, topologyOf(&corev1.NodeSelector{NodeSelectorTerms: c.terms}), name)
	}
}
