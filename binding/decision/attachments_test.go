package decision_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestR3R4AnAttachedVolumeIsNotReclaimed(t *testing.T) {
	recycled := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return Orphan(corev1.PersistentVolumeReclaimRecycle, edits...)
	}
	readLive := func(attachments ...obj.Object) decision.Snapshot {
		return Proving(Knowing(attachments...), DataKey, AKey, obj.PodsKey("default"), detached)
	}
	cached := func(attachments ...obj.Object) decision.Snapshot {
		return Proving(Knowing(attachments...), DataKey, AKey, obj.PodsKey("default"))
	}
	going := func(a *storagev1.VolumeAttachment) { a.DeletionTimestamp = &metav1.Time{} }
	deletes, waits := "R3 RunDeleter pv/a by "+Own, []string{"Normal VolumeDelete pv/a"}
	on := func(nodes string) []string { return []string{"the storage is still in use: attached to node " + nodes} }
	var many []obj.Object
	for i := range 200 {
		many = append(many, AttachedTo(fmt.Sprintf("a-node-with-a-rather-long-name-%03d", i)))
	}
	runDecisions(t, []decisionTest{
		{name: "R3 that there is none must be read live", volume: MadeByOwn(), known: cached(), options: Hooked(), expected: "R3 Read volumeattachments"},
		{name: "R3 those of others prove nothing", volume: MadeByOwn(), known: cached(AttachedTo("n", OfVolume("b"))), options: Hooked(), expected: "R3 Read volumeattachments"},
		{name: "R3 first of all reads, so that the volume's own comes last", volume: MadeByOwn(), known: decision.Snapshot{}, options: Hooked(), expected: "R3 Read volumeattachments"},
		{name: "R3 there is none", volume: MadeByOwn(), known: readLive(), options: Hooked(), expected: deletes},
		{name: "R3 those of others do not count", volume: MadeByOwn(), known: readLive(AttachedTo("n", OfVolume("b")), AttachedTo("m", Inline)), options: Hooked(), expected: deletes},
		{name: "R3 W6 one from a cache settles it", volume: MadeByOwn(), known: Knowing(AttachedTo("n")), options: Hooked(), expected: "R3 Wait", events: waits, says: on("n"), retry: decision.RetryBackoff},
		{name: "R3 W6 one read live", volume: MadeByOwn(), known: readLive(AttachedTo("n")), options: Hooked(), expected: "R3 Wait", events: waits, says: on("n"), retry: decision.RetryBackoff},
		{name: "R3 one that is being deleted counts", volume: MadeByOwn(), known: readLive(AttachedTo("n", going)), options: Hooked(), expected: "R3 Wait", events: waits, says: on("n"), retry: decision.RetryBackoff},
		{name: "R3 N nodes in order, none twice", volume: MadeByOwn(), known: readLive(AttachedTo("n"), AttachedTo("m"), AttachedTo("n")), options: Hooked(), expected: "R3 Wait", events: waits, says: on("m, n"), retry: decision.RetryBackoff},
		{name: "R3 N many nodes", volume: MadeByOwn(), known: readLive(many...), options: Hooked(), expected: "R3 Wait", events: waits, says: on("a-node"), retry: decision.RetryBackoff},
		{name: "R3 Failed stays Failed", volume: MadeByOwn(InPhase(corev1.VolumeFailed)), known: readLive(AttachedTo("n")), options: Hooked(), expected: "R3 Wait", events: waits, says: on("n"), retry: decision.RetryBackoff},
		{name: "R3 its storage is deleted already: nothing is left to save", volume: MadeByOwn(), known: Answering(readLive(AttachedTo("n")), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 nobody of ours deletes it: nobody asks", volume: MadeByOwn(VolumeNote(ProvisionedBy, "their.example.com")), known: Knowing(AttachedTo("n")), options: Hooked(), expected: "R3 Wait", says: []string{"their.example.com"}},
		{name: "R2 Retain: nobody asks", volume: Orphan(corev1.PersistentVolumeReclaimRetain), known: Knowing(AttachedTo("n")), options: Hooked(), expected: "R2 Nothing", fresh: true},
		{name: "V3 Released first", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: readLive(AttachedTo("n")), options: Hooked(), expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},

		{name: "R4 that there is none must be read live", volume: recycled(), known: cached(), options: Hooked(), expected: "R4 Read volumeattachments"},
		{name: "R4 W6 it is attached", volume: recycled(), known: readLive(AttachedTo("n")), options: Hooked(), expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: on("n"), retry: decision.RetryBackoff},
		{name: "R4 it is scrubbed already", volume: recycled(), known: Answering(readLive(AttachedTo("n")), reclaimed(decision.RunRecycler, "hostPath", nil)), options: Hooked(), expected: "R4 UpdateVolume pv/a: spec.claimRef={default/data}" + unannounced + letsGo, events: []string{"Normal VolumeRecycled pv/a"}},
	})
}

func TestAttachmentsInASnapshot(t *testing.T) {
	known := Knowing(AttachedTo("n"), AttachedTo("m", OfVolume("b")), AttachedTo("o", Inline))
	for _, test := range []struct {
		of       string
		from     decision.Snapshot
		nodes    []string
		expected decision.Source
	}{
		{"a", known, []string{"n"}, decision.FromCache},
		{"c", known, nil, decision.NotInCache},
		{"", known, nil, decision.NotInCache},
		{"a", Proving(known, detached), []string{"n"}, decision.FromLiveRead},
		{"c", Proving(known, detached), nil, decision.FromLiveRead},
	} {
		found, source := test.from.AttachmentsOf(test.of)
		var nodes []string
		for _, attachment := range found {
			nodes = append(nodes, attachment.Spec.NodeName)
		}
		assert.Equal(t, test.nodes, nodes, test.of)
		assert.Equal(t, test.expected, source, test.of)
	}
}
