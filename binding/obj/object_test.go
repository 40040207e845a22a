package obj_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestV3WhatIsTheObjectOfAKey(t *testing.T) {
	key := obj.ClaimKey("shop", "orders")
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := bindingtest.Claim("shop", "orders", "5Gi")
		claim.UID, claim.ResourceVersion = "u-1", "7"
		change(claim)
		return claim
	}
	require.NoError(t, obj.CheckReply(key, claim(func(*corev1.PersistentVolumeClaim) {})))
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"nothing":           func(c *corev1.PersistentVolumeClaim) { *c = corev1.PersistentVolumeClaim{} },
		"another namespace": func(c *corev1.PersistentVolumeClaim) { c.Namespace = "bank" },
		"another name":      func(c *corev1.PersistentVolumeClaim) { c.Name = "carts" },
		"no UID":            func(c *corev1.PersistentVolumeClaim) { c.UID = "" },
		"no version":        func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "" },
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, obj.CheckReply(key, claim(change)), "the reply is not pvc/shop/orders, but has namespace")
		})
	}
}

// V3: what has a name, a UID and a version, and yet is none of an API server's.
func TestV3WhatIsNotTheWholeObject(t *testing.T) {
	metadata := metav1.ObjectMeta{Name: "it", UID: "u-1", ResourceVersion: "7"}
	volume := bindingtest.Volume("it", "1Gi")
	volume.ObjectMeta = metadata
	require.NoError(t, obj.CheckReply(obj.VolumeKey("it"), volume))
	inNamespace := metadata
	inNamespace.Namespace = "shop"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: inNamespace}
	claim.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	for _, test := range []struct {
		key    obj.Key
		object obj.Object
		lacks  string
	}{
		{obj.VolumeKey("it"), &corev1.PersistentVolume{ObjectMeta: metadata}, "spec.accessModes"},
		{obj.ClaimKey("shop", "it"), &corev1.PersistentVolumeClaim{ObjectMeta: inNamespace}, "spec.accessModes"},
		{obj.ClaimKey("shop", "it"), claim, "spec.accessModes"},
	} {
		assert.ErrorContains(t, obj.CheckReply(test.key, test.object), fmt.Sprintf("the reply to %s is not whole: %q has no %s", test.key, "it", test.lacks))
	}
}

func TestV3WhatIsNoObjectOfAList(t *testing.T) {
	pods, attachments := obj.PodsKey("shop"), obj.AttachmentsKey()
	require.NoError(t, obj.CheckItem(pods, bindingtest.Pod("shop", "till", "")))
	require.NoError(t, obj.CheckItem(obj.ClaimsKey(), bindingtest.Claim("shop", "data", "1Gi")))
	require.NoError(t, obj.CheckItem(attachments, bindingtest.Attachment("disk", "node")))
	for _, test := range []struct {
		name, want string
		key        obj.Key
		item       obj.Object
	}{
		{"a pod of another namespace", `the list of pods/shop has an object with namespace "bank"`, pods, bindingtest.Pod("bank", "till", "")},
		{"a pod without a name", `and name ""`, pods, bindingtest.Pod("shop", "", "")},
		{"the metadata of a pod", `the reply to pods/shop is not whole: "till" has no spec`, pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "till"}}},
		{"a claim of no namespace", `the list of pvc has an object with namespace ""`, obj.ClaimsKey(), bindingtest.Claim("", "data", "1Gi")},
		{"the metadata of a claim", `the reply to pvc is not whole: "data" has no spec.accessModes`, obj.ClaimsKey(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}},
		{"the metadata of an attachment", `the reply to volumeattachments is not whole: "a" has no spec.source`, attachments, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
	} {
		assert.ErrorContains(t, obj.CheckItem(test.key, test.item), test.want, test.name)
	}
}

func TestV3WhatIsNotTheWholeList(t *testing.T) {
	key := obj.AttachmentsKey()
	list := &storagev1.VolumeAttachmentList{}
	require.ErrorContains(t, obj.CheckList(key, list), "the reply is no list of volumeattachments")
	list.ResourceVersion = "7"
	require.NoError(t, obj.CheckList(key, list))
	list.Continue = "more"
	require.ErrorContains(t, obj.CheckList(key, list), "the list of volumeattachments is not whole")
}
