package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestClientListsAttachments(t *testing.T) {
	server := newServer(t, bindingtest.Attachment("disk", "n1"), bindingtest.Attachment("disk", "n2"))
	client := &clientgo.Client{Clientset: clientset(t, server)}
	attachments, err := client.ListAttachments(t.Context())
	require.NoError(t, err)
	require.Len(t, attachments, 2)
	assert.Equal(t, "n2", attachments[1].Spec.NodeName)

	server.Deny(func(request apitest.Request) bool {
		return request == apitest.Request{Verb: "list", Group: "storage.k8s.io", Resource: "volumeattachments"}
	})
	_, err = client.ListAttachments(t.Context())
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// newReclaimed is a claim whose volume's storage is to be deleted with it, and a node that the volume is attached to.
func newReclaimed(t *testing.T) (*apitest.Server, *bindingtest.Storage, func(*clientgo.Runner)) {
	t.Helper()
	storage := bindingtest.NewStorage()
	disk := bindingtest.Volume("disk", "10Gi", func(volume *corev1.PersistentVolume) {
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	server := newServer(t, disk, bindingtest.Claim("default", "data", "5Gi"), bindingtest.Attachment("disk", "n1"))
	storage.Add(disk)
	storage.Attach(server.Server)
	return server, storage, func(r *clientgo.Runner) {
		r.Options.Protection, r.Resync = decision.ProtectionOn, -1
		r.Hooks = storage.Hooks("example.com/ours", "hostPath")
	}
}

func TestRunnerReclaimsWhatIsDetached(t *testing.T) {
	server, storage, hookSet := newReclaimed(t)
	r := start(t, server, hookSet)
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), deleteNow))
	r.eventually(r.has(decision.EventVolumeDelete), "R3 it is attached")
	assert.Len(t, storage.Kept(), 1)
	require.NoError(t, server.Delete(t.Context(), bindingtest.AttachmentKey("disk-n1"), deleteNow))
	r.eventually(func() bool { return r.phase("disk") == "none" }, "R3 its storage is deleted, and then the volume")
	assert.Empty(t, storage.Kept())
	assert.Empty(t, storage.Problems(), "X2")
	assert.Positive(t, r.calls(bindingtest.VerbList, obj.KindAttachment), "R3 they were listed live")
}

// Without hooks nobody asks for attachments: the rights do not include them.
func TestRunnerWithoutHooksAsksForNoAttachments(t *testing.T) {
	server, _, _ := newReclaimed(t)
	asked := make(chan apitest.Request, 100)
	server.Deny(func(request apitest.Request) bool {
		if request.Resource == "volumeattachments" {
			asked <- request
		}
		return request.Resource == "volumeattachments"
	})
	r := start(t, server)
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	remove(t, server, "data")
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeFailed }, "R3 nobody deletes it")
	assert.Empty(t, asked)
}
