package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// testAttachments checks what binding relies on of VolumeAttachments: they name a volume and a node, that cannot be changed,
// and a finalizer holds them (R3).
func testAttachments(t *testing.T, newAPI NewAPI) {
	ctx, server := t.Context(), newAPI(t)
	for name, test := range map[string]struct {
		change func(*storagev1.VolumeAttachment)
		field  string
	}{
		"no attacher": {func(a *storagev1.VolumeAttachment) { a.Spec.Attacher = "" }, "spec.attacher"},
		"no source":   {func(a *storagev1.VolumeAttachment) { a.Spec.Source.PersistentVolumeName = nil }, "spec.source"},
		"two sources": {func(a *storagev1.VolumeAttachment) {
			a.Spec.Source.InlineVolumeSpec = &corev1.PersistentVolumeSpec{}
		}, "spec.source"},
		"no volume": {func(a *storagev1.VolumeAttachment) { a.Spec.Source.PersistentVolumeName = new("") }, "spec.source.persistentVolumeName"},
		"no node":   {func(a *storagev1.VolumeAttachment) { a.Spec.NodeName = "" }, "spec.nodeName"},
	} {
		t.Run(name, func(t *testing.T) {
			attachment := bindingtest.Attachment("disk", "n1")
			test.change(attachment)
			assertFault(t, server, test.field, attachment)
		})
	}

	attachment := bindingtest.Attachment("disk", "n1")
	attachment.Finalizers, attachment.Status.Attached = []string{"external-attacher/csi-example-com"}, true
	created, err := server.Create(ctx, attachment)
	require.NoError(t, err, "the volume need not exist")
	stored := created.(*storagev1.VolumeAttachment)
	assert.False(t, stored.Status.Attached, "A1")
	moved := stored.DeepCopy()
	moved.Spec.NodeName = "n2"
	_, err = server.Update(ctx, moved)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	stored.Status.Attached = true
	updated, err := server.UpdateStatus(ctx, stored)
	require.NoError(t, err)
	assert.True(t, updated.(*storagev1.VolumeAttachment).Status.Attached)

	key := bindingtest.AttachmentKey(attachment.Name)
	require.NoError(t, server.Delete(ctx, key, metav1.DeleteOptions{}))
	held, err := server.Get(ctx, key)
	require.NoError(t, err, "A5 its finalizer holds it")
	require.NotNil(t, held.GetDeletionTimestamp())
	held.SetFinalizers(nil)
	_, err = server.Update(ctx, held)
	require.NoError(t, err)
	_, err = server.Get(ctx, key)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
