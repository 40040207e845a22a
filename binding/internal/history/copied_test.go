package history

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// copying is a provisioner that copies the annotations of the claim to what it makes.
type copying struct{ hooks.Provisioner }

func (c *copying) Provision(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	volume, err := c.Provisioner.Provision(ctx, request)
	if err == nil {
		for key, value := range request.Claim.Annotations {
			metav1.SetMetaDataAnnotation(&volume.ObjectMeta, key, value)
		}
	}
	return volume, err
}

// P2: a tenant notes on their claim that its storage is deleted, or that a CSI driver deletes it. A volume made for it says neither,
// and its storage is deleted with it.
func TestP2AProvisionerCopiesAnnotations(t *testing.T) {
	for annotation, value := range map[string]string{
		reclaim.AnnouncementAnnotation: `{"by":"x","token":1,"seconds":0,"done":true}`,
		MigratedTo:                     "csi.example.com",
	} {
		t.Run(annotation, func(t *testing.T) {
			odd := &copying{}
			w := newProvisioningWorld(t, odd)
			odd.Provisioner = w.storage
			claim := w.claim()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotation, value)
			_, err := w.server.UpdateClaim(t.Context(), claim)
			require.NoError(t, err)
			for range 8 {
				require.NoError(t, w.first.Settle(t.Context()))
				require.NoError(t, w.first.AdvanceClock(t.Context()))
			}
			require.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
			assert.NotContains(t, w.server.Volume(provisioned).Annotations, annotation)
			require.NoError(t, w.server.Delete(t.Context(), obj.KeyOf(claim), metav1.DeleteOptions{}))
			require.NoError(t, w.first.Settle(t.Context()))
			assert.Nil(t, w.server.Volume(provisioned))
			assert.Empty(t, w.storage.Kept())
		})
	}
}
