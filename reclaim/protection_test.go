package reclaim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func metaWith(deleted bool, finalizers ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web-data", Finalizers: finalizers}
	if deleted {
		meta.DeletionTimestamp = &metav1.Time{}
	}
	return meta
}

func TestNeedsProtection(t *testing.T) {
	for _, finalizer := range []string{ClaimProtection, VolumeProtection} {
		for _, test := range []struct {
			deleted    bool
			finalizers []string
			needs      bool
		}{
			{false, nil, true},
			{false, []string{foreign}, true},
			{false, []string{finalizer}, false},
			{false, []string{foreign, finalizer}, false},
			{true, nil, false},
			{true, []string{foreign}, false},
			{true, []string{finalizer}, false},
		} {
			t.Run(fmt.Sprintf("F1 %s deleted %t has %v", finalizer, test.deleted, test.finalizers), func(t *testing.T) {
				meta := metaWith(test.deleted, test.finalizers...)
				assert.Equal(t, test.needs, NeedsProtection(&corev1.PersistentVolumeClaim{ObjectMeta: meta}, finalizer))
				assert.Equal(t, test.needs, NeedsProtection(&corev1.PersistentVolume{ObjectMeta: meta}, finalizer))
			})
		}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metaWith(false, ClaimProtection)}
	assert.True(t, NeedsProtection(volume, VolumeProtection), "F1 the other finalizer does not count")
}

func TestVolumeReleasable(t *testing.T) {
	for _, phase := range []corev1.PersistentVolumePhase{"", "Pending", "Available", "Bound", "Released", "Failed"} {
		for _, deleted := range []bool{false, true} {
			for _, finalizers := range [][]string{nil, {VolumeProtection}, {ClaimProtection}, {foreign, VolumeProtection}} {
				t.Run(fmt.Sprintf("F3 %s deleted %t has %v", phase, deleted, finalizers), func(t *testing.T) {
					volume := &corev1.PersistentVolume{ObjectMeta: metaWith(deleted, finalizers...)}
					volume.Status.Phase = phase
					has := len(finalizers) > 0 && finalizers[len(finalizers)-1] == VolumeProtection
					assert.Equal(t, deleted && has && phase != "Bound", VolumeReleasable(volume, VolumeProtection))
				})
			}
		}
	}
}

// owners are the ways in which a claim can have the pod web, of UID uid-of-web,
// as its owner; only the controller owns it.
var owners = map[string][]metav1.OwnerReference{
	"nobody":                nil,
	"the pod":               {owner("uid-of-web", true)},
	"the pod, no control":   {owner("uid-of-web", false)},
	"an older pod":          {owner("older-uid", true)},
	"the pod among several": {owner("older-uid", false), owner("uid-of-web", true)},
}

func owner(uid types.UID, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: uid, Controller: &controller}
}

// ends are the ways in which a pod is about to end.
var ends = map[string]func(*corev1.Pod){
	"alive":                func(*corev1.Pod) {},
	"finished":             func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded },
	"grace, not requested": func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = new(int64) },
	"deleted": func(pod *corev1.Pod) {
		thirty := int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{}, &thirty
	},
	"deleted, no grace stated": func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} },
	"shut down": func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{}, new(int64)
	},
}

func TestUsesClaim(t *testing.T) {
	forAllUses(t, func(t *testing.T, node, volume, owner, end string, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
		owned := owner == "the pod" || owner == "the pod among several"
		uses := map[string]bool{
			"by name":            true,
			"generic":            owned && end != "shut down",
			"generic and a name": true,
			"another name":       false,
			"another generic":    false,
			"neither":            false,
		}
		assert.Equal(t, node != "" && uses[volume], UsesClaim(pod, claim))

		claim.Namespace = "bank"
		assert.False(t, UsesClaim(pod, claim), "a claim of another namespace")
	})
}

func TestClaimReleasable(t *testing.T) {
	forAllUses(t, func(t *testing.T, _, _, _, _ string, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
		pods := []*corev1.Pod{newPod("other", scratch("tmp")), pod}
		beforePod, beforeClaim := pod.DeepCopy(), claim.DeepCopy()
		assert.Equal(t, !UsesClaim(pod, claim), ClaimReleasable(claim, pods))
		assert.True(t, ClaimReleasable(claim, pods[:1]), "nobody uses it")
		assert.True(t, ClaimReleasable(claim, nil), "no pods")
		assert.Equal(t, beforePod, pod, "X6")
		assert.Equal(t, beforeClaim, claim, "X6")

		unprotected := claim.DeepCopy()
		unprotected.Finalizers = []string{foreign}
		assert.False(t, ClaimReleasable(unprotected, nil), "no finalizer to take off")

		wanted := claim.DeepCopy()
		wanted.DeletionTimestamp = nil
		assert.False(t, ClaimReleasable(wanted, nil), "not being deleted")
	})
}

var uses = map[string][]corev1.Volume{
	"by name":            {scratch("tmp"), byName("data", "web-data")},
	"generic":            {scratch("tmp"), generic("data")},
	"generic and a name": {generic("data"), byName("again", "web-data")},
	"another name":       {byName("data", "other")},
	"another generic":    {generic("logs")},
	"neither":            {scratch("data")},
}

func forAllUses(t *testing.T, check func(t *testing.T, node, volume, owner, end string, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim)) {
	for _, node := range []string{"", "node-1"} {
		for volume, volumes := range uses {
			for owner, references := range owners {
				for end, apply := range ends {
					t.Run(fmt.Sprintf("F2 node %q, %s, owner %s, %s", node, volume, owner, end), func(t *testing.T) {
						pod := newPod("web", volumes...)
						pod.Spec.NodeName = node
						apply(pod)
						claim := &corev1.PersistentVolumeClaim{ObjectMeta: metaWith(true, foreign, ClaimProtection)}
						claim.OwnerReferences = references
						check(t, node, volume, owner, end, pod, claim)
					})
				}
			}
		}
	}
}
