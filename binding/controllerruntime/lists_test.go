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
	"github.com/pvbind/pvbind/binding/obj"
)

// What keeps lists and answers them in the server's place is noticed by a list that is older than one before. The next one is
// believed, for the server may have been restored.
func TestV3AListFromThePastIsAnError(t *testing.T) {
	lists := map[string]func(context.Context, Client) error{
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
	}
	for kind, list := range lists {
		t.Run(kind, func(t *testing.T) {
			c, version := listing(t)
			*version = "10"
			require.NoError(t, list(t.Context(), c))
			*version = "9"
			require.ErrorContains(t, list(t.Context(), c), "has resourceVersion 9, and 10 was seen before")
			require.NoError(t, list(t.Context(), c), "the server may have been restored")
		})
	}
	t.Run("what the Reconciler was shown of a claim or a volume counts too", func(t *testing.T) {
		for what, object := range map[string]obj.Object{"a claim": bindingtest.Claim("default", "data", "5Gi"), "a volume": bindingtest.Volume("disk", "5Gi")} {
			r := &Reconciler{}
			c, version := listingFor(t, r)
			object.SetUID("uid-1")
			object.SetResourceVersion("999")
			r.observe(object.(client.Object))
			*version = "998"
			for kind, list := range lists {
				require.ErrorContains(t, list(t.Context(), c), "has resourceVersion 998, and 999 was seen before", "%s: %s", what, kind)
				require.NoError(t, list(t.Context(), c), "%s: %s", what, kind)
			}
		}
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
	return listingFor(t, &Reconciler{})
}

func listingFor(t *testing.T, r *Reconciler) (Client, *string) {
	t.Helper()
	version := ""
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.SetResourceVersion(version)
			return nil
		},
	})
	r.controller = r.newController(Client{Client: reader}, nil)
	return r.controller.Client.(Client), &version
}
