package controllerruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pvbind/pvbind/binding/controllerruntime"
)

// The lists of a fake client have no resourceVersion, as that of a proxy which answers with {}. Settle takes them, and nothing else.
func TestR3AListWithoutAVersionIsAnError(t *testing.T) {
	client := controllerruntime.Client{Client: fake.NewClientBuilder().Build()}
	_, err := client.ListAttachments(t.Context())
	require.ErrorContains(t, err, "the reply is no list of volumeattachments")
	_, err = client.ListClaims(t.Context())
	require.ErrorContains(t, err, "the reply is no list of pvc")
	_, err = client.ListPods(t.Context(), "default")
	require.ErrorContains(t, err, "the reply is no list of pods/default")
}
