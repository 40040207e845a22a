package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// What else Validate finds fault with is tested by creating it: see conformance.
func TestValidateWhatNoClientCanSend(t *testing.T) {
	for field, object := range map[string]obj.Object{
		"metadata.namespace": bindingtest.Claim("", "data", "1Gi"),
		"kind":               &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}},
	} {
		errs := bindingtest.Validate(object)
		if assert.Len(t, errs, 1) {
			assert.Equal(t, field, errs[0].Field)
		}
	}
}
