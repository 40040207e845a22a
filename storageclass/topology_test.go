package storageclass_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/storageclass"
)

func topology(expressions ...corev1.TopologySelectorLabelRequirement) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: expressions}
}

func oneOf(key string, values ...string) corev1.TopologySelectorLabelRequirement {
	return corev1.TopologySelectorLabelRequirement{Key: key, Values: values}
}

func TestAllowsNode(t *testing.T) {
	node := map[string]string{"zone": "a", "rack": "7", "odd": "not a label value!"}
	for name, c := range map[string]struct {
		allowed []corev1.TopologySelectorTerm
		want    bool
	}{
		"S5 nothing said":             {nil, true},
		"S5 an empty list":            {[]corev1.TopologySelectorTerm{}, true},
		"S5 an empty topology":        {[]corev1.TopologySelectorTerm{topology()}, false},
		"S5 the value":                {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "a"))}, true},
		"S5 one of several values":    {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "b", "a"))}, true},
		"S5 another value":            {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "b"))}, false},
		"S5 no value":                 {[]corev1.TopologySelectorTerm{topology(oneOf("zone"))}, false},
		"S5 a label the node lacks":   {[]corev1.TopologySelectorTerm{topology(oneOf("region", ""))}, false},
		"S5 both":                     {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "a"), oneOf("rack", "7"))}, true},
		"S5 one of both":              {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "a"), oneOf("rack", "8"))}, false},
		"S5 the second topology":      {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "b")), topology(oneOf("rack", "7"))}, true},
		"S5 a malformed other value":  {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "a", "not a label value!"))}, false},
		"S5 a malformed value itself": {[]corev1.TopologySelectorTerm{topology(oneOf("odd", "not a label value!"))}, false},
		"S5 malformed, then good":     {[]corev1.TopologySelectorTerm{topology(oneOf("zone", "a", "!")), topology(oneOf("rack", "7"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &storagev1.StorageClass{AllowedTopologies: c.allowed}
			assert.Equal(t, c.want, storageclass.AllowsNode(class, node))
			assert.Equal(t, len(c.allowed) == 0, storageclass.AllowsNode(class, nil), "a node without labels")
		})
	}
}
