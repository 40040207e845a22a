package obj_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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
