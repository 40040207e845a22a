package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

const (
	ours  = "example.com/dirs"
	other = "example.com/other"
)

// life is that of a claim: it is created, bound and deleted.
type life struct {
	name    string
	objects func() []obj.Object
	class   string
	// people are what else may happen, in lives in which at least one of these does.
	people []fate
	// oneIn: of the plans of two mishaps, only each of so many is played; what they share with others is played there.
	oneIn int
	// late: after a crash the volumes are known before the claims.
	late bool
	// found are plans that have found something, to be played even where there is no time for all.
	found [][]mishap
	// stays: a volume is left. end judges it.
	stays bool
	end   func(t *testing.T, w *lifetime, volume *corev1.PersistentVolume)
}

// depth is how many things happen in one life.
func (l life) depth() int {
	if testing.Short() {
		return 1
	}
	return 2
}

func lives() []life {
	class := func(policy corev1.PersistentVolumeReclaimPolicy, edits ...func(*storagev1.StorageClass)) func() []obj.Object {
		return func() []obj.Object { return []obj.Object{dirsClass(ours, policy, edits...)} }
	}
	volume := func(policy corev1.PersistentVolumeReclaimPolicy) func() []obj.Object {
		return func() []obj.Object {
			return []obj.Object{bindingtest.Volume("a", "1Gi", withPolicy(policy))}
		}
	}
	gone := func(t *testing.T, _ *lifetime, volume *corev1.PersistentVolume) {
		assert.Fail(t, "a volume is left", "%s %s", volume.Name, volume.Status.Phase)
	}
	return []life{
		{name: "R3 Delete", objects: class("Delete"), class: "dirs", end: gone},
		{name: "R3 Delete, another volume comes", oneIn: 3, objects: class("Delete"), class: "dirs", people: []fate{rivalComes, rivalComesTold}, end: gone},
		{name: "R3 Delete, another provisioner comes", oneIn: 3, objects: class("Delete"), class: "dirs", people: []fate{classChanges, classChangesTold}, end: gone,
			found: [][]mishap{
				{{3, classChangesTold}},                        // the storage was deleted, and then the volume created
				{{0, classChangesTold}, {6, claimDeletedTold}}, // what the second one made was taken for what the first one's deleter had deleted
			}},
		{name: "R3 Delete, its volume is deleted as well", objects: class("Delete"), class: "dirs", people: []fate{volumeDeleted}, end: gone},
		{name: "V3 Delete, claims are known late", objects: class("Delete"), class: "dirs", late: true, people: []fate{crashBefore, crashAfter}, end: gone},
		{name: "P2 Delete, on a node", oneIn: 3, objects: class("Delete", delayedClass), class: "dirs", end: gone},
		{name: "R2 Retain", objects: class("Retain"), class: "dirs", stays: true, end: retained},
		{name: "R3 Delete by source", objects: volume("Delete"), end: neverClaimed},
		{name: "R4 Recycle by source", objects: volume("Recycle"), stays: true, end: recycled},
	}
}

func dirsClass(provisioner string, policy corev1.PersistentVolumeReclaimPolicy, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := classOf("dirs", provisioner, edits...)
	class.ReclaimPolicy = new(policy)
	return class
}

func retained(t *testing.T, w *lifetime, volume *corev1.PersistentVolume) {
	assert.Equal(t, corev1.VolumeReleased, volume.Status.Phase)
	if w.written != "" {
		assert.Equal(t, bindingtest.Written, w.storages[0].Kept()[0].Content, "X2")
	}
}

// neverClaimed: the claim was deleted before the volume was its own.
func neverClaimed(t *testing.T, w *lifetime, volume *corev1.PersistentVolume) {
	assert.Empty(t, w.written)
	assert.Nil(t, volume.Spec.ClaimRef)
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
}

func recycled(t *testing.T, w *lifetime, volume *corev1.PersistentVolume) {
	assert.Nil(t, volume.Spec.ClaimRef)
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
	if w.written != "" {
		assert.Equal(t, bindingtest.Scrubbed, w.storages[0].Kept()[0].Content)
	}
}
