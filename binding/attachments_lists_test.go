package binding_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func TestAClientThatListsNoAttachments(t *testing.T) {
	cluster, storage := leavingVolumes(t, 1)
	cluster.Controller.Client = withoutAttachments{cluster.Client}
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Empty(t, storage.Kept(), "its cluster attaches nothing")
	assert.Empty(t, storage.Problems())
}

// leavingVolumes are n volumes of claims that have just gone, and a controller that is to delete their storage.
func leavingVolumes(t *testing.T, n int) (*Driven, *bindingtest.Storage) {
	storage := bindingtest.NewStorage()
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks(Own, "hostPath")}
	cluster := NewDrivenWith(options)
	for i := range n {
		name := fmt.Sprint("data-", i)
		volume := bindingtest.Volume(name, "1Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete))
		storage.Add(volume)
		for _, object := range []obj.Object{volume, bindingtest.Claim("default", name, "1Gi", Naming(name))} {
			_, err := cluster.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	require.NoError(t, cluster.Settle(t.Context()))
	for i := range n {
		require.NoError(t, cluster.Server.Delete(t.Context(), obj.ClaimKey("default", fmt.Sprint("data-", i)), metav1.DeleteOptions{}))
	}
	return cluster, storage
}

func TestR3ManyVolumesShareAListOfAttachments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, storage := leavingVolumes(t, 50)
		var lists atomic.Int32
		listed := func(call *bindingtest.Call) bool {
			return call.Verb == bindingtest.VerbList && call.Key.Kind == obj.KindAttachment
		}
		ended, end := context.WithCancel(t.Context())
		cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
			if listed(call) && lists.Load() == 0 && ended.Err() == nil {
				return fmt.Errorf("not yet")
			}
			err := do()
			if listed(call) {
				lists.Add(1)
				time.Sleep(time.Second)
			}
			return err
		})
		_ = cluster.Settle(t.Context()) // all are Released, and none can be listed
		require.Len(t, storage.Kept(), 50)
		end()
		for _, kept := range storage.Kept() {
			go func() {
				_, err := cluster.Controller.Sync(t.Context(), obj.VolumeKey(kept.Volume))
				assert.NoError(t, err)
			}()
		}
		time.Sleep(time.Hour)
		assert.EqualValues(t, 2, lists.Load(), "the first one's, and that of all the others")
		assert.Less(t, len(storage.Kept()), 50)
		assert.Empty(t, strings.Join(storage.Problems(), "\n"))
	})
}

// withoutAttachments is a client that has no more methods than it must.
type withoutAttachments struct{ binding.Client }
