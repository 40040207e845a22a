package binding_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// V3: no list may be older than the object that it decides on, and the Client is told of that before: the volume without a claimRef (V1),
// the claim with its deletionTimestamp (F2), and the volume with its announcement (R3, R4).
func TestV3TheClientIsToldWhatAListMustNotPrecede(t *testing.T) {
	storage := bindingtest.NewStorage()
	disk := bindingtest.Volume("disk", "2Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete))
	storage.Add(disk)
	cluster := NewDrivenWith(bindingtest.DriverOptions{
		BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks(Own, "hostPath"),
	}, disk, bindingtest.Volume("freed", "1Gi"), bindingtest.Claim("default", "data", "2Gi"))
	freed := cluster.Volume("freed")
	freed.Status.Phase = corev1.VolumeReleased
	_, err := cluster.Server.UpdateVolumeStatus(t.Context(), freed)
	require.NoError(t, err)
	client, listed := &follows{Client: cluster.Client}, map[obj.Kind]bool{}
	cluster.Controller.Client = client
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		var about obj.Object
		switch {
		case call.Verb != bindingtest.VerbList:
			return do()
		case call.Key.Kind == obj.KindClaim:
			about = cluster.Volume("freed")
		case call.Key.Kind == obj.KindPod:
			about = cluster.Claim("default", "data")
		default:
			about = cluster.Volume("disk")
		}
		assert.GreaterOrEqual(t, client.newest, number(t, about.GetResourceVersion()), "%s", call)
		listed[call.Key.Kind] = true
		return do()
	})
	require.NoError(t, cluster.Settle(t.Context()))
	require.NoError(t, cluster.Server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Empty(t, storage.Kept())
	assert.ElementsMatch(t, []obj.Kind{obj.KindClaim, obj.KindPod, obj.KindAttachment}, slices.Collect(maps.Keys(listed)))
}

// follows is a Client that notes what it is told of. It is used from one goroutine.
type follows struct {
	*bindingtest.Client
	newest int
}

var _ binding.Follower = (*follows)(nil)

func (f *follows) Reached(version string) {
	if number, err := strconv.Atoi(version); err == nil {
		f.newest = max(f.newest, number)
	}
}

func number(t *testing.T, version string) int {
	t.Helper()
	number, err := strconv.Atoi(version)
	require.NoError(t, err)
	return number
}
