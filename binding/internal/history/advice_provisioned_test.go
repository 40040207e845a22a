package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// P2, X2: what was made for a claim was another's at last, and the claim is told so. What the event says is done literally, at once or while no controller
// runs that knows of it: the data stays, and the claim that is created again gets storage of its own.
func TestP2AdviceOnWhatWasAnothers(t *testing.T) {
	for _, way := range []string{"at once", "while no controller runs that knows"} {
		t.Run("P2 X2 "+way, func(t *testing.T) {
			w := newProvisioningWorld(t, nil)
			w.givesToAnother()
			require.Equal(t, corev1.ClaimPending, w.claim().Status.Phase)
			advice := "create that volume again, with reclaim policy Retain and the claimRef of the other one, then delete the claim and create it again"
			require.True(t, slices.ContainsFunc(w.server.Events(), func(e decision.Event) bool { return strings.Contains(e.Message, advice) }))

			w.create(bindingtest.Volume(provisioned, "1Gi", OfClass("fast"), WithPolicy(corev1.PersistentVolumeReclaimRetain), RefersTo("default", "other", "uid-other")))
			require.NoError(t, w.server.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
			if way != "at once" {
				w.first.Restart()
				w.second.Restart()
			}
			w.settle()
			require.Nil(t, w.claim())
			w.create(bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("fast"))))
			w.settle()
			assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
			assert.NotEqual(t, provisioned, w.claim().Spec.VolumeName)
			assert.True(t, w.storage.Write(provisioned), "the data of the other claim is gone")
			assert.Empty(t, w.storage.Problems())
		})
	}
}

// givesToAnother has a person give the volume that is made for the claim to another one as soon as it is stored. That writes onto it, goes, and its volume is
// deleted under Retain.
func (w *provisioningWorld) givesToAnother() {
	other := bindingtest.Claim("default", "other", "1Gi", RequestingClass(new("fast")), Naming(provisioned))
	reassigned := false
	for _, d := range []*bindingtest.Driver{w.first, w.second} {
		d.Client.Use(func(call *bindingtest.Call, do func() error) error {
			err := do()
			if err == nil && call.Verb == bindingtest.VerbCreate && call.Key == obj.VolumeKey(provisioned) && !reassigned {
				reassigned = true
				volume := w.server.Volume(provisioned)
				volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "other"}
				volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
				_, err := w.server.Update(w.t.Context(), volume)
				require.NoError(w.t, err)
			}
			return err
		})
	}
	w.settle()
	require.True(w.t, reassigned)
	w.create(other)
	w.settle()
	require.Equal(w.t, corev1.ClaimBound, w.server.Claim("default", "other").Status.Phase)
	require.True(w.t, w.storage.Write(provisioned))
	for _, key := range []obj.Key{obj.KeyOf(other), obj.VolumeKey(provisioned)} {
		require.NoError(w.t, w.server.Delete(w.t.Context(), key, metav1.DeleteOptions{}))
		w.settle()
	}
	require.Nil(w.t, w.server.Volume(provisioned))
}
