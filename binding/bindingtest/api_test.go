package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/conformance"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestTheServerIsAnAPIServer(t *testing.T) {
	conformance.Run(t, func(*testing.T) conformance.API { return bindingtest.NewServer() })
}

func TestKindsThatAreNotStored(t *testing.T) {
	server := bindingtest.NewServer()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	_, err := server.Create(t.Context(), secret)
	assert.ErrorContains(t, err, "Secret")
	key := obj.Key{Kind: "Secret", Namespace: "default", Name: "s"}
	_, err = server.Get(t.Context(), key)
	assert.ErrorContains(t, err, "Secret")
	assert.ErrorContains(t, server.Delete(t.Context(), key, metav1.DeleteOptions{}), "Secret")
}
