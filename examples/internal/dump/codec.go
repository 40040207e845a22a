package dump

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	return scheme
}

// newCodec decodes JSON of a kind that is known; it reports unknown fields as a strict decoding error beside the object.
func newCodec(scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Decoder {
	return json.NewSerializerWithOptions(known(kind), scheme, scheme, json.SerializerOptions{Strict: true})
}

// known spares the codec from reading the text once more, to find its kind.
type known schema.GroupVersionKind

func (k known) Interpret([]byte) (*schema.GroupVersionKind, error) {
	kind := schema.GroupVersionKind(k)
	return &kind, nil
}
