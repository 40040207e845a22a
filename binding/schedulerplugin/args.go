package schedulerplugin

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// args are the arguments as the plugin uses them.
type args struct {
	timeout time.Duration
	shape   scheduling.Shape
}

const (
	defaultTimeout = 600 * time.Second
	// leastTimeout is for the writes where nobody is to wait for what follows.
	leastTimeout = time.Second
)

// argsOf returns the arguments in an object. The features say what the defaults are.
func argsOf(object runtime.Object, features featuregate.MutableFeatureGate) (args, error) {
	given, err := decode(object)
	if err != nil {
		return args{}, err
	}
	is := args{timeout: defaultTimeout}
	if seconds := given.BindTimeoutSeconds; seconds != nil {
		if *seconds < 0 {
			return args{}, &obj.InvalidError{Object: "args", Field: "bindTimeoutSeconds", Problem: fmt.Sprintf("%d is negative", *seconds)}
		}
		is.timeout = max(time.Duration(*seconds)*time.Second, leastTimeout)
	}
	for _, point := range given.Shape {
		is.shape = append(is.shape, scheduling.ShapePoint(point))
	}
	if len(given.Shape) == 0 && isOn(storageCapacityScoring, features) {
		is.shape = scheduling.DefaultShape()
	}
	return is, is.shape.Validate()
}

// decode returns the arguments. A field that is not known is an error, for it was meant to do something.
func decode(object runtime.Object) (*configv1.VolumeBindingArgs, error) {
	given := &configv1.VolumeBindingArgs{}
	switch object := object.(type) {
	case nil:
		return given, nil
	case *configv1.VolumeBindingArgs:
		if object == nil {
			return given, nil
		}
		return object, nil
	case *runtime.Unknown: // JSON, or YAML, of which JSON is a part
		return given, yaml.UnmarshalStrict(object.Raw, given)
	}
	return nil, fmt.Errorf("want a *runtime.Unknown or a *VolumeBindingArgs, got %T", object)
}

// storageCapacityScoring is the feature gate by which kube-scheduler scores nodes by their storage.
const storageCapacityScoring featuregate.Feature = "StorageCapacityScoring"

// isOn reports whether a feature is known and on. Whether it is known depends on the program: kube-scheduler registers its own.
func isOn(feature featuregate.Feature, in featuregate.MutableFeatureGate) bool {
	_, known := in.GetAll()[feature]
	return known && in.Enabled(feature)
}
