package schedulerplugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/pvbind/pvbind/binding/scheduling"
)

// gateWith is a feature gate of a program that has the feature.
func gateWith(t *testing.T, on bool) featuregate.MutableFeatureGate {
	t.Helper()
	gate := featuregate.NewFeatureGate()
	require.NoError(t, gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{storageCapacityScoring: {Default: on, PreRelease: featuregate.Beta}}))
	return gate
}

// S10: arguments and defaults are those of VolumeBinding.
func TestArgs(t *testing.T) {
	unknown, off, on := featuregate.NewFeatureGate(), gateWith(t, false), gateWith(t, true)
	raw := func(text string) runtime.Object { return &runtime.Unknown{Raw: []byte(text)} }
	shape := scheduling.Shape{{Utilization: 0, Score: 1}, {Utilization: 50, Score: 7}}
	points := []configv1.UtilizationShapePoint{{Utilization: 0, Score: 1}, {Utilization: 50, Score: 7}}
	for name, c := range map[string]struct {
		given    runtime.Object
		features featuregate.MutableFeatureGate
		want     args
	}{
		"none":                    {nil, unknown, args{600 * time.Second, nil}},
		"none, the gate off":      {nil, off, args{600 * time.Second, nil}},
		"none, the gate on":       {nil, on, args{600 * time.Second, scheduling.DefaultShape()}},
		"empty":                   {&runtime.Unknown{}, off, args{600 * time.Second, nil}},
		"typed, empty":            {&configv1.VolumeBindingArgs{}, off, args{600 * time.Second, nil}},
		"JSON":                    {raw(`{"bindTimeoutSeconds":30,"shape":[{"utilization":0,"score":1},{"utilization":50,"score":7}]}`), on, args{30 * time.Second, shape}},
		"YAML":                    {raw("bindTimeoutSeconds: 30\nkind: PVBindArgs\n"), off, args{30 * time.Second, nil}},
		"typed":                   {&configv1.VolumeBindingArgs{BindTimeoutSeconds: new(int64(7)), Shape: points}, on, args{7 * time.Second, shape}},
		"a shape, the gate off":   {&configv1.VolumeBindingArgs{Shape: points}, off, args{600 * time.Second, shape}},
		"no waiting, but writing": {&configv1.VolumeBindingArgs{BindTimeoutSeconds: new(int64)}, off, args{time.Second, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := argsOf(c.given, c.features)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	for name, c := range map[string]struct {
		given runtime.Object
		want  string
	}{
		"a negative timeout": {raw(`{"bindTimeoutSeconds":-1}`), "args: bindTimeoutSeconds: -1 is negative"},
		"a field of another": {raw(`{"bindTimeout":1}`), `unknown field "bindTimeout"`},
		"a type of another":  {raw(`{"bindTimeoutSeconds":"1m"}`), "bindTimeoutSeconds"},
		"not a shape":        {raw(`{"shape":[{"utilization":101,"score":1}]}`), "shape: [0].utilization: 101 is not between 0 and 100"},
		"another object":     {&corev1.Pod{}, "got *v1.Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := argsOf(c.given, off)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
