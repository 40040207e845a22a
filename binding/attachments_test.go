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
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

func attachedTo(node string, edits ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	attachment := bindingtest.Attachment("a", node)
	attachment.UID, attachment.ResourceVersion = types.UID("uid-of-"+attachment.Name), "5"
	for _, edit := range edits {
		edit(attachment)
	}
	return attachment
}

func inline(a *storagev1.VolumeAttachment) {
	a.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}
}

func ofVolume(name string) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.Spec.Source.PersistentVolumeName = &name }
}

func TestR3R4AnAttachedVolumeIsNotReclaimed(t *testing.T) {
	recycled := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return orphan(corev1.PersistentVolumeReclaimRecycle, edits...)
	}
	proven := func(attachments ...obj.Object) binding.Snapshot {
		return proving(knowing(attachments...), dataKey, aKey, obj.PodsKey("default"), detached)
	}
	cached := func(attachments ...obj.Object) binding.Snapshot {
		return proving(knowing(attachments...), dataKey, aKey, obj.PodsKey("default"))
	}
	going := func(a *storagev1.VolumeAttachment) { a.DeletionTimestamp = &metav1.Time{} }
	deletes, waits := "R3 RunDeleter pv/a by "+own, []string{"Normal VolumeDelete pv/a"}
	on := func(nodes string) []string { return []string{"the storage is still in use: attached to node " + nodes} }
	var many []obj.Object
	for i := range 200 {
		many = append(many, attachedTo(fmt.Sprintf("a-node-with-a-rather-long-name-%03d", i)))
	}
	runDecisions(t, []decision{
		{name: "R3 that there is none must be read live", volume: madeByOwn(), known: cached(), rules: hooked(), want: "R3 Read volumeattachments"},
		{name: "R3 those of others prove nothing", volume: madeByOwn(), known: cached(attachedTo("n", ofVolume("b"))), rules: hooked(), want: "R3 Read volumeattachments"},
		{name: "R3 first of all reads, so that the volume's own comes last", volume: madeByOwn(), known: binding.Snapshot{}, rules: hooked(), want: "R3 Read volumeattachments"},
		{name: "R3 there is none", volume: madeByOwn(), known: proven(), rules: hooked(), want: deletes},
		{name: "R3 those of others do not count", volume: madeByOwn(), known: proven(attachedTo("n", ofVolume("b")), attachedTo("m", inline)), rules: hooked(), want: deletes},
		{name: "R3 W6 one from a cache settles it", volume: madeByOwn(), known: knowing(attachedTo("n")), rules: hooked(), want: "R3 Wait", events: waits, says: on("n"), retry: binding.RetryBackoff},
		{name: "R3 W6 one read live", volume: madeByOwn(), known: proven(attachedTo("n")), rules: hooked(), want: "R3 Wait", events: waits, says: on("n"), retry: binding.RetryBackoff},
		{name: "R3 one that is being deleted counts", volume: madeByOwn(), known: proven(attachedTo("n", going)), rules: hooked(), want: "R3 Wait", events: waits, says: on("n"), retry: binding.RetryBackoff},
		{name: "R3 N nodes in order, none twice", volume: madeByOwn(), known: proven(attachedTo("n"), attachedTo("m"), attachedTo("n")), rules: hooked(), want: "R3 Wait", events: waits, says: on("m, n"), retry: binding.RetryBackoff},
		{name: "R3 N many nodes", volume: madeByOwn(), known: proven(many...), rules: hooked(), want: "R3 Wait", events: waits, says: on("a-node"), retry: binding.RetryBackoff},
		{name: "R3 Failed stays Failed", volume: madeByOwn(inPhase(corev1.VolumeFailed)), known: proven(attachedTo("n")), rules: hooked(), want: "R3 Wait", events: waits, says: on("n"), retry: binding.RetryBackoff},
		{name: "R3 its storage is deleted already: nothing is left to save", volume: madeByOwn(), known: answering(proven(attachedTo("n")), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 nobody of ours deletes it: nobody asks", volume: madeByOwn(volumeNote(provisionedBy, "their.example.com")), known: knowing(attachedTo("n")), rules: hooked(), want: "R3 Wait", says: []string{"their.example.com"}},
		{name: "R2 Retain: nobody asks", volume: orphan(corev1.PersistentVolumeReclaimRetain), known: knowing(attachedTo("n")), rules: hooked(), want: "R2 Nothing"},
		{name: "V3 Released first", volume: madeByOwn(inPhase(corev1.VolumeBound)), known: proven(attachedTo("n")), rules: hooked(), want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},

		{name: "R4 that there is none must be read live", volume: recycled(), known: cached(), rules: hooked(), want: "R4 Read volumeattachments"},
		{name: "R4 W6 it is attached", volume: recycled(), known: proven(attachedTo("n")), rules: hooked(), want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: on("n"), retry: binding.RetryBackoff},
		{name: "R4 it is scrubbed already", volume: recycled(), known: answering(proven(attachedTo("n")), reclaimed(binding.RunRecycler, "hostPath", nil)), rules: hooked(), want: "R4 UpdateVolume pv/a: spec.claimRef={default/data}", events: []string{"Normal VolumeRecycled pv/a"}},
	})
}

func TestR3WhatIsAttachedAsASyncReadsIt(t *testing.T) {
	toList := func(t *testing.T) *talk {
		return newTalk(t, hooked(), aKey, madeByOwn()).starts().says("R3 Read volumeattachments")
	}
	noSuchPath := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{Resource: "volumeattachments"}, "", "404 page not found", 0, true)
	for _, failure := range []error{apierrors.NewNotFound(schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}, ""), noSuchPath, errLost, errForbidden} {
		t.Run("R3 a list that fails proves nothing: "+failure.Error(), func(t *testing.T) {
			d := toList(t).gets(nil, failure)
			require.True(t, d.step.Done())
			require.ErrorIs(t, d.step.Err(), failure)
			assert.Positive(t, d.step.After(), "W6")
		})
	}
	listing := func(d *talk, attachments ...*storagev1.VolumeAttachment) *talk {
		return d.took(d.state.Proceed(d.key, binding.ReplyAttachments(attachments)))
	}
	t.Run("R3 the list is newer than the cache: attached", func(t *testing.T) {
		d := listing(toList(t), attachedTo("n")).ends()
		assert.Positive(t, d.step.After(), "W6")
		assert.Equal(t, []string{"Normal VolumeDelete"}, d.published)
	})
	t.Run("R3 the list is newer than the cache: attached while it was on its way", func(t *testing.T) {
		d := toList(t)
		assert.Equal(t, []obj.Key{aKey}, d.state.Observe(attachedTo("n")), "W5")
		d = listing(d).says("R3 Read pv/a").gets(madeByOwn(), nil).says("V3 Read pvc/default/data").gets(nil, errNotFound)
		d.says("R3 RunDeleter pv/a")
	})
	t.Run("R3 B6 the proof ends with a write", func(t *testing.T) {
		failed := func(v *corev1.PersistentVolume) {
			v.Status.Phase, v.Status.Message = corev1.VolumeFailed, "something else"
		}
		d := listing(toList(t)).says("R3 Read pv/a").gets(at("60", madeByOwn(failed)), nil)
		d.says("R3 Read volumeattachments") // for it was read for another version of the volume
	})
	t.Run("X5 an older version, and one that is gone, change nothing", func(t *testing.T) {
		state := newTalk(t, hooked(), aKey, madeByOwn(), attachedTo("n")).state
		assert.Empty(t, state.Observe(at("4", attachedTo("n", ofVolume("b")))))
		assert.Equal(t, []obj.Key{aKey}, state.Forget(attachedTo("n")), "W5")
		assert.Empty(t, state.Observe(at("9", attachedTo("n"))), "it is buried")
		assert.Equal(t, "R3 Read", decides(t, state, aKey), "none is known")
	})
}

func TestAttachmentsInASnapshot(t *testing.T) {
	known := knowing(attachedTo("n"), attachedTo("m", ofVolume("b")), attachedTo("o", inline))
	for _, test := range []struct {
		of    string
		from  binding.Snapshot
		nodes []string
		want  binding.Evidence
	}{
		{"a", known, []string{"n"}, binding.Cached},
		{"c", known, nil, binding.Unknown},
		{"", known, nil, binding.Unknown},
		{"a", proving(known, detached), []string{"n"}, binding.Live},
		{"c", proving(known, detached), nil, binding.Live},
	} {
		found, evidence := test.from.AttachmentsOf(test.of)
		var nodes []string
		for _, attachment := range found {
			nodes = append(nodes, attachment.Spec.NodeName)
		}
		assert.Equal(t, test.nodes, nodes, test.of)
		assert.Equal(t, test.want, evidence, test.of)
	}
}

// withoutAttachments is a client that has no more methods than it must.
type withoutAttachments struct{ binding.Client }

func TestAClientThatListsNoAttachments(t *testing.T) {
	cluster, storage := leavingVolumes(t, 1)
	cluster.Controller.Client = withoutAttachments{cluster.Client}
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Empty(t, storage.Kept(), "its cluster attaches nothing")
	assert.Empty(t, storage.Problems())
}

// leavingVolumes are n volumes of claims that have just gone, and a controller that is to delete their storage.
func leavingVolumes(t *testing.T, n int) (*bindingtest.Cluster, *bindingtest.Storage) {
	storage := bindingtest.NewStorage()
	options := bindingtest.Options{Rules: binding.Rules{Protection: binding.ProtectionOn}, Hooks: storage.Hooks(own, "hostPath")}
	cluster := bindingtest.NewClusterWith(options)
	for i := range n {
		name := fmt.Sprint("data-", i)
		volume := bindingtest.Volume(name, "1Gi", withPolicy(corev1.PersistentVolumeReclaimDelete))
		storage.Add(volume)
		for _, object := range []obj.Object{volume, bindingtest.Claim("default", name, "1Gi", naming(name))} {
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
			return call.Verb == bindingtest.VerbList && call.Key.Kind == bindingtest.KindAttachment
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
