package controllerruntime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// What keeps lists and answers them in the server's place is noticed by a list that is older than one before. The next one is
// believed, for the server may have been restored.
func TestV3AListFromThePastIsAnError(t *testing.T) {
	for kind, list := range map[string]func(context.Context, Client) error{
		"claims": func(ctx context.Context, c Client) error {
			_, err := c.ListClaims(ctx)
			return err
		},
		"pods": func(ctx context.Context, c Client) error {
			_, err := c.ListPods(ctx, "default")
			return err
		},
		"attachments": func(ctx context.Context, c Client) error {
			_, err := c.ListAttachments(ctx)
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c, version := listing(t)
			*version = "10"
			require.NoError(t, list(t.Context(), c))
			*version = "9"
			require.ErrorContains(t, list(t.Context(), c), "has resourceVersion 9, and 10 was read before")
			require.NoError(t, list(t.Context(), c), "the server may have been restored")
		})
	}
	t.Run("what a claim's own reply shows counts too", func(t *testing.T) {
		c, version := listing(t)
		claim, err := c.GetClaim(t.Context(), "default", "data")
		require.NoError(t, err)
		require.Equal(t, "999", claim.ResourceVersion)
		*version = "998"
		_, err = c.ListClaims(t.Context())
		require.ErrorContains(t, err, "the list of pvc has resourceVersion 998, and 999 was read before")
	})
	t.Run("a Client that no Reconciler has made compares nothing", func(t *testing.T) {
		c, version := listing(t)
		c.lists = nil
		for _, *version = range []string{"10", "9"} {
			_, err := c.ListClaims(t.Context())
			assert.NoError(t, err)
		}
	})
}

// listing returns the Client of a Reconciler, and the resourceVersion of the lists that it reads.
func listing(t *testing.T) (Client, *string) {
	t.Helper()
	version, claim := "", bindingtest.Claim("default", "data", "5Gi")
	claim.ResourceVersion = "999"
	reader := interceptor.NewClient(fake.NewClientBuilder().WithObjects(claim).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.SetResourceVersion(version)
			return nil
		},
	})
	controller := (&Reconciler{}).newController(Client{Client: reader}, nil)
	return controller.Client.(Client), &version
}
