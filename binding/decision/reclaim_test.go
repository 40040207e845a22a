package decision_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

var (
	detached = obj.AttachmentsKey() // read live, that there is none
)

// reclaimed is the answer of a deleter or recycler to the volume of orphan.
func reclaimed(of decision.ActionKind, hook string, err error) decision.Answer {
	return decision.Answer{Of: of, Hook: hook, For: "uid-of-volume", Err: err}
}

func TestR3WhoDeletesTheStorage(t *testing.T) {
	readLive := Proving(decision.Snapshot{}, DataKey, AKey, detached)
	remove := corev1.PersistentVolumeReclaimDelete
	csi := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}
	}
	by := func(name string) VolumeEdit { return VolumeNote(ProvisionedBy, name) }
	failed := []string{"Warning VolumeFailedDelete pv/a"}
	unannounced := func(v *corev1.PersistentVolume) { delete(v.Annotations, reclaim.AnnouncementAnnotation) }
	inTree := Hooked(func(names *hooks.Names) { names.Deleters = sets.New("kubernetes.io/ours") })
	inTree.Migrations = storageclass.Migrations{}
	swapped := decision.Options{Hooks: hooks.Names{Deleters: sets.New("hostPath"), SourceDeleters: sets.New(Own, "csi")}}
	byOwn, bySource := "R3 RunDeleter pv/a by "+Own, "R3 RunDeleter pv/a by hostPath"
	runDecisions(t, []decisionTest{
		{name: "R3 the one registered under provisioned-by", volume: MadeByOwn(), known: readLive, options: Hooked(), expected: byOwn},
		{name: "R3 whatever its source", volume: MadeByOwn(csi), known: readLive, options: Hooked(), expected: byOwn},
		{name: "R3 its source decides nothing beside it", volume: MadeByOwn(by("their.example.com")), known: readLive, options: Hooked(), expected: "R3 Wait"},
		{name: "R6 X10 another's name was written onto it, and what a provisioner of ours had put on it keeps it", volume: MadeByOwn(by("their.example.com"), BeingDeleted, VolumeFinalizers(InTreeFinalizer), unannounced), known: readLive, options: Hooked(), expected: "R3 Wait", events: failed},
		{name: "R6 X10 also where our deleter has deleted its storage before", volume: MadeByOwn(by("their.example.com"), BeingDeleted, VolumeFinalizers(InTreeFinalizer), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"me","token":9}`)),
			known: Answering(readLive, reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R3 Wait", events: failed},
		{name: "R3 an in-tree name that is registered", volume: MadeByOwn(by("kubernetes.io/ours")), known: readLive, options: inTree, expected: "R3 RunDeleter pv/a by kubernetes.io/ours"},
		{name: "R1 migrated: nobody of ours", volume: MadeByOwn(by("kubernetes.io/cinder"), VolumeNote(MigratedTo, "cinder.csi.openstack.org")), known: readLive, options: Hooked(func(n *hooks.Names) { n.Deleters.Insert("kubernetes.io/cinder") }),
			expected: "R6 UpdateVolume pv/a: -finalizer " + InTreeFinalizer},
		{name: "R1 migrated: not by source either", volume: Orphan(remove, VolumeNote(MigratedTo, "csi.example.com")), known: readLive, options: Hooked(), expected: "R3 Wait"},
		{name: "R3 nobody made it: the one registered for its source", volume: Orphan(remove), known: readLive, options: Hooked(), expected: bySource},
		{name: "R3 an empty provisioned-by is none", volume: Orphan(remove, by("")), known: readLive, options: Hooked(), expected: bySource},
		{name: "R3 X10 a CSI volume is its driver's, and told, for that may not know it", volume: Orphan(remove, csi), known: readLive, options: swapped, expected: "R3 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "R3 the two sets are not each other's: a provisioner's name", volume: MadeByOwn(), known: readLive, options: swapped, expected: "R3 Wait"},
		{name: "R3 the two sets are not each other's: a source", volume: Orphan(remove), known: readLive, options: swapped,
			expected: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: no deleter for hostPath volumes is registered" status.phase=Failed status.reason=VolumeFailedDelete`, events: failed},
		{name: "R2 X2 Retain: none", volume: Orphan(corev1.PersistentVolumeReclaimRetain, by(Own)), known: readLive, options: Hooked(), expected: "R2 Nothing", fresh: true},
		{name: "R2 X2 Retain, Failed before: none", volume: Orphan(corev1.PersistentVolumeReclaimRetain, by(Own), InPhase(corev1.VolumeFailed)), known: readLive, options: Hooked(), expected: "R2 Nothing", fresh: true},
		{name: "R5 an unknown policy: none", volume: Orphan("Burn", by(Own), InPhase(corev1.VolumeFailed)), known: readLive, options: Hooked(),
			expected: `R5 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: persistentVolumeReclaimPolicy \"Burn\" is unknown" status.reason=VolumeUnknownReclaimPolicy`, events: []string{"Warning VolumeUnknownReclaimPolicy pv/a"}},
		{name: "R3 W6 Failed is tried again", volume: MadeByOwn(InPhase(corev1.VolumeFailed)), known: readLive, options: Hooked(), expected: byOwn},
		{name: "R3 being deleted already", volume: MadeByOwn(BeingDeleted), known: readLive, options: Hooked(), expected: byOwn},
	})
}

func TestR3WhatMustBeProvenBeforeStorageIsDeleted(t *testing.T) {
	elsewhere, byAnother := KnownClaim(Naming("b")), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":9}`)
	ours := reclaimed(decision.RunDeleter, Own, nil)
	ours.Token = 7
	again := decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-of-volume", Token: 9, Err: &hooks.Error{Meaning: hooks.InProgress}}
	outwaited := Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), ours)
	outwaited.Now, outwaited.Announced = metav1.Unix(10_000, 0), map[obj.Key]metav1.Time{AKey: metav1.Unix(1_000, 0)}
	runDecisions(t, []decisionTest{
		{name: "R3 V3 X2 the claim is gone: a live read", volume: MadeByOwn(), known: Proving(decision.Snapshot{}, AKey, detached), options: Hooked(), expected: "V3 Read pvc/default/data"},
		{name: "R3 V3 X2 a cached claim of another UID proves nothing", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(OfUID("uid-9"))), AKey, detached), options: Hooked(), expected: "V3 Read pvc/default/data"},
		{name: "R3 V3 the claim recreated, read live", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(OfUID("uid-9"))), AKey, DataKey, detached), options: Hooked(), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R3 X2 the volume itself: a live read", volume: MadeByOwn(), known: Proving(decision.Snapshot{}, DataKey, detached), options: Hooked(), expected: "R3 Read pv/a"},
		{name: "R3 X2 after its deleter's answer too", volume: MadeByOwn(), known: Answering(Proving(decision.Snapshot{}, DataKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R3 Read pv/a"},
		{name: "R3 V3 X2 the claim too", volume: MadeByOwn(), known: Answering(Proving(decision.Snapshot{}, AKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "V3 Read pvc/default/data"},
		{name: "R3 V2 X2 the claim is there and has the volume: never", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(BoundTo("a"))), DataKey, AKey, detached), options: Hooked(), expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "R3 V2 X2 the claim is there and has none yet: never", volume: MadeByOwn(), known: Answering(Proving(Knowing(KnownClaim()), DataKey, AKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R3 V2 the claim has another volume", volume: MadeByOwn(), known: Proving(Knowing(elsewhere, KnownVolume("b", BoundToClaim)), DataKey, AKey, obj.VolumeKey("b"), detached), options: Hooked(), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R8 X2 its storage is deleted, and another has announced its own deleter since: it does not go", volume: MadeByOwn(BeingDeleted, VolumeFinalizers(reclaim.AnnouncementFinalizer), byAnother),
			known: Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R8 Wait", retry: decision.RetryAfter, fresh: true},
		{name: "R8 X2 nor under Retain", volume: MadeByOwn(BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(reclaim.AnnouncementFinalizer), byAnother),
			known: Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R8 Wait", retry: decision.RetryAfter, fresh: true},
		{name: "R8 X2 its deleter is called again, and goes on: the storage may go yet", volume: MadeByOwn(BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(reclaim.AnnouncementFinalizer), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"me","token":9}`)),
			known: Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), ours, again), options: Hooked(), expected: "R8 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}, fresh: true},
		{name: "R6 R8 what keeps it while another may be at work stays, under Retain too", volume: MadeByOwn(BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimRetain), byAnother),
			known: Proving(decision.Snapshot{}, AKey, DataKey, detached), options: Hooked(), expected: "R8 Wait", retry: decision.RetryAfter, fresh: true},
		{name: "R8 X2 nor is it said that all is done", volume: MadeByOwn(WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(reclaim.AnnouncementFinalizer), byAnother),
			known: Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R8 Wait", retry: decision.RetryAfter, fresh: true},
		{name: "R8 X2 nor once that one's time is over, for its work may take longer: the deleter is called again", volume: MadeByOwn(BeingDeleted, VolumeFinalizers(reclaim.AnnouncementFinalizer), byAnother),
			known: outwaited, options: Hooked(), expected: "R8 UpdateVolume pv/a: annotation pvbind.github.io/reclaiming=\"{\\\"by\\\":\\\"me\\\",\\\"token\\\":10000000000000,\\\"seconds\\\":120}\"", fresh: true},
		{name: "R8 X2 nor under one that nobody can read, which may be another's", volume: MadeByOwn(BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(reclaim.AnnouncementFinalizer), VolumeNote(reclaim.AnnouncementAnnotation, "{")),
			known: outwaited, options: Hooked(), expected: "R8 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}, fresh: true},
		{name: "R8 X2 under Retain nobody lets it go, and that is told", volume: MadeByOwn(BeingDeleted, WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers(reclaim.AnnouncementFinalizer), byAnother),
			known: outwaited, options: Hooked(), expected: "R8 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}, fresh: true},
		{name: "R3 V2 that it has it is read live", volume: MadeByOwn(), known: Proving(Knowing(elsewhere, KnownVolume("b", BoundToClaim)), AKey, detached), options: Hooked(), expected: "V2 Read pv/b"},
		{name: "R3 V2 that the claim names it is read live", volume: MadeByOwn(), known: Proving(Knowing(elsewhere, KnownVolume("b", BoundToClaim)), AKey, obj.VolumeKey("b"), detached), options: Hooked(), expected: "V2 Read pvc/default/data"},
		{name: "R3 V2 X2 it has none: never", volume: MadeByOwn(), known: Proving(Knowing(elsewhere), AKey, obj.VolumeKey("b"), detached), options: Hooked(), expected: "V2 Wait",
			events: []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}},
		{name: "R3 V2 its storage is deleted, and then the other volume: it goes", volume: MadeByOwn(),
			known: Answering(Proving(Knowing(elsewhere), DataKey, AKey, obj.VolumeKey("b"), detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 V2 Released first", volume: MadeByOwn(InPhase(corev1.VolumePending)), known: Proving(Knowing(elsewhere, KnownVolume("b", BoundToClaim)), DataKey, AKey, obj.VolumeKey("b"), detached), options: Hooked(), expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "R3 V3 Released first, when the claim is gone", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: Proving(decision.Snapshot{}, AKey, DataKey, detached), options: Hooked(), expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "R3 X2 a claim is Bound to it, whatever its claimRef says", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(BoundTo("a"), func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = "other", "uid-of-other" })), AKey, DataKey, detached), options: Hooked(),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/other was bound to it"}},
		{name: "R3 X2 a claim has the UID in claimRef, and names none as far as a cache tells", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(Named("other"), OfUID("uid-1"))), AKey, DataKey, detached), options: Hooked(),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/other was bound to it"}, retry: decision.RetryBackoff},
		{name: "R3 X2 a Lost claim names it, whose UID the claimRef still has", volume: MadeByOwn(), known: Proving(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), Named("other"), OfUID("uid-1"))), AKey, DataKey, detached), options: Hooked(),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/other was bound to it"}},
		{name: "R3 X2 nor is it Released, for an external provisioner to delete", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: Proving(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), Named("other"), OfUID("uid-1"))), AKey, DataKey, detached),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "R3 X2 nor where its tenant has taken bind-completed off the Lost one, which made it Pending", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: Proving(Knowing(KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending), Named("other"), OfUID("uid-1"))), AKey, DataKey, detached),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/other was bound to it"}},
		{name: "V3 a Lost claim with another UID does not count: its tenant may have written bind-completed", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: Proving(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), Named("other"))), AKey, DataKey, detached),
			expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "V3 X2 a claim that was never bound to it does not count", volume: MadeByOwn(InPhase(corev1.VolumeBound)), known: Proving(Knowing(KnownClaim(Naming("a"), ClaimNote(Completed, "yes"), Named("other"))), AKey, DataKey, detached),
			expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "R3 X2 nor under Retain: another policy may be set later, which an external provisioner carries out", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), known: Proving(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), Named("other"), OfUID("uid-1"))), AKey, DataKey, detached),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/other was bound to it"}},
		{name: "R3 R8 X2 a person took the claimRef away: never", volume: MadeByOwn(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }), known: Answering(Proving(decision.Snapshot{}, AKey, DataKey, detached), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(),
			expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
	})
}

// R8: a deleter has deleted the storage of a volume that somebody has changed meanwhile.
func TestR8WhatBecomesOfAVolumeWithoutStorage(t *testing.T) {
	proven := Proving(decision.Snapshot{}, DataKey, AKey)
	noted, retain, recycle := announcedBy("another", true), WithPolicy(corev1.PersistentVolumeReclaimRetain), WithPolicy(corev1.PersistentVolumeReclaimRecycle)
	none := VolumeFinalizers()
	freed := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }
	fails := `R8 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the storage of volume \"a\" is deleted, and the volume was changed meanwhile; delete the volume or, if it has its storage again, remove the annotation ` +
		reclaim.AnnouncementAnnotation + `" status.phase=Failed status.reason=VolumeFailedDelete`
	nameless := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name = "", "" }
	told := []string{"Warning VolumeFailedDelete pv/a"}
	says := []string{"is deleted", "delete the volume", "remove the annotation " + reclaim.AnnouncementAnnotation}
	deleted := Answering(proven, reclaimed(decision.RunDeleter, "hostPath", nil))
	runDecisions(t, []decisionTest{
		{name: "R8 Retain since: noted before anything else", volume: Orphan(corev1.PersistentVolumeReclaimRetain), known: deleted, options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R8 Recycle since: noted", volume: Orphan(corev1.PersistentVolumeReclaimRecycle), known: deleted, options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R8 R6 noted before the write that Retain asks for, which would drop the announcement", volume: MadeByOwn(retain), known: Answering(proven, reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R8 R6 noted: that write is not made any more", volume: MadeByOwn(retain, noted), known: proven, options: Hooked(), expected: fails, events: told, fresh: true},
		{name: "R8 noted, Retain: Failed", volume: Orphan(corev1.PersistentVolumeReclaimRetain, noted), known: proven, options: Hooked(), expected: fails, events: told, says: says, fresh: true},
		{name: "R8 V3 a claim in no cache may exist", volume: Orphan(corev1.PersistentVolumeReclaimRetain, noted), options: Hooked(), expected: "R8 Read pvc/default/data", fresh: true},
		{name: "R8 noted, Recycle: no recycler runs", volume: Orphan(corev1.PersistentVolumeReclaimRecycle, noted), known: proven, options: Hooked(), expected: fails, events: told, fresh: true},
		{name: "R8 noted, no claimRef: it is offered to nobody", volume: Orphan(corev1.PersistentVolumeReclaimDelete, freed, noted), known: Knowing(KnownClaim(RequestingClass(new("")))), options: Hooked(), expected: fails, events: told, fresh: true},
		{name: "R8 V1 its claimRef has no namespace and no name: noted, and no claim is read", volume: Orphan(corev1.PersistentVolumeReclaimRetain, nameless), known: deleted, options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R8 V1 under Delete too", volume: Orphan(corev1.PersistentVolumeReclaimDelete, nameless), known: deleted, options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
		{name: "R8 V1 and told", volume: Orphan(corev1.PersistentVolumeReclaimRetain, nameless, noted), options: Hooked(), expected: fails, events: told, says: says, fresh: true},
		{name: "R8 V1 a person deletes it: it goes", volume: MadeByOwn(recycle, nameless, noted, BeingDeleted), options: Hooked(), expected: "R3 UpdateVolume pv/a: -finalizer " + InTreeFinalizer, fresh: true},
		{name: "R8 by a controller without hooks too", volume: Orphan(corev1.PersistentVolumeReclaimRecycle, noted), known: proven, expected: fails, events: told},
		{name: "R8 N told once", volume: Orphan(corev1.PersistentVolumeReclaimRecycle, noted, FailedFor("the storage of volume \"a\" is deleted, and the volume was changed meanwhile; delete the volume or, if it has its storage again, remove the annotation "+reclaim.AnnouncementAnnotation)), known: proven, options: Hooked(), expected: "R8 Wait", fresh: true},
		{name: "R8 R3 Delete again, the claim gone: the object goes", volume: Orphan(corev1.PersistentVolumeReclaimDelete, noted), known: proven, options: Hooked(), expected: "R3 DeleteVolume pv/a", fresh: true},
		{name: "R8 R3 V3 that it is gone is read live", volume: Orphan(corev1.PersistentVolumeReclaimDelete, noted), options: Hooked(), expected: "V3 Read pvc/default/data", fresh: true},
		{name: "R8 a person deletes it: it goes, whatever its policy", volume: MadeByOwn(recycle, noted, BeingDeleted), known: proven, options: Hooked(), expected: "R3 UpdateVolume pv/a: -finalizer " + InTreeFinalizer, fresh: true},
		{name: "R8 and whatever its claimRef", volume: MadeByOwn(freed, noted, BeingDeleted), known: proven, options: Hooked(), expected: "R3 UpdateVolume pv/a: -finalizer " + InTreeFinalizer, fresh: true},
		{name: "R8 given to a claim: it is not bound", volume: Orphan(corev1.PersistentVolumeReclaimDelete, none, noted), known: Knowing(KnownClaim()), options: Hooked(), expected: "R8 Wait", events: told, says: says, fresh: true},
		{name: "R8 a claim that is Bound to it: told", volume: Orphan(corev1.PersistentVolumeReclaimDelete, none, noted, InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))), options: Hooked(), expected: "R8 Wait", events: told, says: says, fresh: true},
		{name: "R8 V4 its claim has another: it is not taken from it to be offered", volume: Orphan(corev1.PersistentVolumeReclaimRetain, noted), known: Proving(Knowing(KnownClaim(Naming("b")), KnownVolume("b", BoundToClaim)), DataKey, obj.VolumeKey("b")), options: Hooked(), expected: fails, events: told, fresh: true},
		{name: "R8 B2 a claim does not get it", claim: KnownClaim(), known: Knowing(KnownVolume("a", BoundToClaim, noted)), options: Hooked(), expected: "R8 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: says, fresh: true},
		{name: "R8 M12 nor by a reservation", claim: KnownClaim(), known: Knowing(KnownVolume("a", func(v *corev1.PersistentVolume) { BoundToClaim(v); v.Spec.ClaimRef.UID = "" }, noted)), options: Hooked(), expected: "R8 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: says, fresh: true},
	})
}

func TestR3TheOrderOfADeletion(t *testing.T) {
	readLive := Proving(decision.Snapshot{}, DataKey, AKey, detached)
	done := func(hook string) decision.Snapshot {
		return Answering(readLive, reclaimed(decision.RunDeleter, hook, nil))
	}
	others := MadeByOwn(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "uid-1"; v.UID = "uid-of-volume" })
	runDecisions(t, []decisionTest{
		{name: "R3 first the storage", volume: MadeByOwn(), known: readLive, options: Hooked(), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R3 then the object, with its UID and resourceVersion", volume: MadeByOwn(), known: done(Own), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 one that was Failed", volume: MadeByOwn(InPhase(corev1.VolumeFailed)), known: done(Own), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 one that nobody made", volume: Orphan(corev1.PersistentVolumeReclaimDelete), known: done("hostPath"), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 then the finalizer", volume: MadeByOwn(BeingDeleted), known: done(Own), options: Hooked(), expected: "R3 UpdateVolume pv/a: -finalizer " + InTreeFinalizer},
		{name: "R3 and no other", volume: MadeByOwn(BeingDeleted, VolumeFinalizers("theirs", InTreeFinalizer, VolumeProtection)), known: done(Own), options: Hooked(), expected: "R3 UpdateVolume pv/a: " + notedDone + " -finalizer " + InTreeFinalizer},
		{name: "R3 R8 then others let it go: it is noted", volume: MadeByOwn(BeingDeleted, VolumeFinalizers("theirs")), known: done(Own), options: Hooked(), expected: "R3 UpdateVolume pv/a: " + notedDone},
		{name: "R3 R8 noted, and nothing is done again", volume: MadeByOwn(BeingDeleted, VolumeFinalizers("theirs"), announcedBy("another", true)), known: Proving(decision.Snapshot{}, DataKey), options: Hooked(), expected: "R3 Nothing", fresh: true},
		{name: "R3 R6 nothing is added to what is being deleted", volume: MadeByOwn(BeingDeleted, VolumeFinalizers()), known: done(Own), options: Hooked(), expected: "R3 Nothing"},
		{name: "R3 the finalizer stays until the storage is deleted", volume: MadeByOwn(BeingDeleted), known: Answering(readLive, reclaimed(decision.RunDeleter, Own, ErrBroken)), options: Hooked(),
			expected: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedDelete`, events: []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "R3 the last answer counts", volume: others, known: Answering(readLive, reclaimed(decision.RunDeleter, Own, ErrBroken), reclaimed(decision.RunDeleter, Own, nil)), options: Hooked(), expected: "R3 DeleteVolume pv/a"},
		{name: "R3 R8 the answer of another deleter does not, and its token is spent", volume: MadeByOwn(), known: done("hostPath"), options: Hooked(),
			expected: "R8 UpdateVolume pv/a: " + tokenGrows},
		{name: "R3 nor one to another volume of the name", volume: MadeByOwn(), known: Answering(readLive, decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-9"}), options: Hooked(), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R3 nor a recycler's", volume: MadeByOwn(), known: Answering(readLive, reclaimed(decision.RunRecycler, Own, nil)), options: Hooked(), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R2 X2 Retain since its storage was deleted: the object stays", volume: MadeByOwn(WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers()), known: done(Own), options: Hooked(), expected: "R8 UpdateVolume pv/a: " + notedDone + letsGo},
	})
}

// TestRhWhatADeleterMeans is about every answer there is, to a Released and to a Failed volume.
func TestRhWhatADeleterMeans(t *testing.T) {
	readLive := Proving(decision.Snapshot{}, DataKey, AKey, detached)
	fails := `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedDelete`
	failed, inUse := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Normal VolumeDelete pv/a"}
	broken := []string{"the disk is broken"}
	answers := func(err error) decision.Snapshot {
		return Answering(readLive, reclaimed(decision.RunDeleter, Own, err))
	}
	runDecisions(t, []decisionTest{
		{name: "R3 it failed", volume: MadeByOwn(), known: answers(ErrBroken), options: Hooked(), expected: fails, events: failed, says: broken},
		{name: "R3 W6 it failed again", volume: MadeByOwn(FailedFor("the disk is broken")), known: answers(ErrBroken), options: Hooked(), expected: "R3 Wait", retry: decision.RetryBackoff},
		{name: "R3 W6 N it failed for another reason", volume: MadeByOwn(FailedFor("the disk is broken")), known: answers(errors.New("busy")), options: Hooked(), expected: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: busy" status.reason=VolumeFailedDelete`, events: failed, says: []string{"busy"}},
		{name: "R3 N another controller's message: it is said once, and kept", volume: MadeByOwn(InPhase(corev1.VolumeFailed), func(v *corev1.PersistentVolume) { v.Status.Message = "their words" }), known: answers(ErrBroken), options: Hooked(),
			expected: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.reason=VolumeFailedDelete`, events: failed},
		{name: "Rh R3 refused for good", volume: MadeByOwn(), known: answers(Meaning(hooks.Refused)), options: Hooked(), expected: fails, events: failed, says: broken},
		{name: "Rh R3 refused for good: not again", volume: MadeByOwn(FailedFor("the disk is broken")), known: answers(fmt.Errorf("%w", Meaning(hooks.Refused))), options: Hooked(), expected: "R3 Wait"},
		{name: "Rh W6 in progress", volume: MadeByOwn(), known: answers(InProgress(0)), options: Hooked(), expected: "Rh Wait", retry: decision.RetryBackoff},
		{name: "Rh in progress: ask again after d", volume: MadeByOwn(), known: answers(InProgress(time.Second)), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "Rh in progress keeps Failed", volume: MadeByOwn(FailedFor("the disk is broken")), known: answers(InProgress(time.Second)), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "R8 W6 X10 the call would have come too late: the phase stays", volume: MadeByOwn(), known: answers(Meaning(hooks.TooLate)), options: Hooked(), expected: "R8 Wait", events: failed, says: broken, retry: decision.RetryBackoff},
		{name: "Rh W6 X8 an earlier call has not returned: the phase stays, and it is told", volume: MadeByOwn(), known: answers(Meaning(hooks.NotReturned)), options: Hooked(), expected: "R8 Wait", events: failed, says: broken, retry: decision.RetryBackoff},
		{name: "Rh R3 W6 in use keeps the phase", volume: MadeByOwn(), known: answers(Meaning(hooks.InUse)), options: Hooked(), expected: "R3 Wait", events: inUse, says: broken, retry: decision.RetryBackoff},
		{name: "Rh R3 not mine keeps the phase, and is not asked again", volume: MadeByOwn(), known: answers(Meaning(hooks.NotMine)), options: Hooked(), expected: "R3 Wait", says: broken},
		{name: "Rh R3 W6 in use keeps Failed", volume: MadeByOwn(FailedFor("the disk is broken")), known: answers(Meaning(hooks.InUse)), options: Hooked(), expected: "R3 Wait", events: inUse, says: broken, retry: decision.RetryBackoff},
	})
}

func TestR4Recycling(t *testing.T) {
	recycled := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return Orphan(corev1.PersistentVolumeReclaimRecycle, append([]VolumeEdit{VolumeNote(BoundBy, "yes")}, edits...)...)
	}
	pods := obj.PodsKey("default")
	readLive := Proving(decision.Snapshot{}, DataKey, AKey, pods, detached)
	runs := "R4 RunRecycler pv/a by hostPath"
	user, failed, scrubbed := PodUsing("web-0", Scheduled), []string{"Warning VolumeFailedRecycle pv/a"}, []string{"Normal VolumeRecycled pv/a"}
	answers := func(err error) decision.Snapshot {
		return Answering(readLive, reclaimed(decision.RunRecycler, "hostPath", err))
	}
	fails := `R4 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedRecycle`
	created := metav1.Unix(1_000_000, 0)
	again := KnownClaim(OfUID("uid-9"), func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = created })
	slipped := KnownClaim(OfUID("uid-9"), BoundTo("a"), ClaimPhase(corev1.ClaimLost), func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = created })
	startedAt := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.StartTime = new(metav1.Unix(seconds, 0)) }
	}
	besideAgain := func(edits ...func(*corev1.Pod)) decision.Snapshot {
		return Proving(Knowing(PodUsing("web-0", edits...), again), DataKey, AKey, pods, detached)
	}
	used := []string{"Normal VolumeFailedRecycle pv/a"}
	var thousands []obj.Object
	for i := range 3000 {
		thousands = append(thousands, PodUsing(fmt.Sprintf("web-%d", 1000+i), Scheduled))
	}
	runDecisions(t, []decisionTest{
		{name: "R4 a live list of pods before it is scrubbed", volume: recycled(), known: Proving(Knowing(podOf("other")), DataKey, AKey, detached), options: Hooked(), expected: "R4 Read pods/default"},
		{name: "R4 V3 a live read of the claim before it is scrubbed", volume: recycled(), known: Proving(decision.Snapshot{}, AKey, pods, detached), options: Hooked(), expected: "V3 Read pvc/default/data"},
		{name: "R4 a live read of the volume before it is scrubbed", volume: recycled(), known: Proving(decision.Snapshot{}, DataKey, pods, detached), options: Hooked(), expected: "R4 Read pv/a"},
		{name: "R4 it is scrubbed", volume: recycled(), known: readLive, options: Hooked(), expected: runs},
		{name: "R4 whoever made it", volume: recycled(VolumeNote(ProvisionedBy, Own)), known: readLive, options: Hooked(), expected: runs},
		{name: "R4 Failed: once more", volume: recycled(InPhase(corev1.VolumeFailed)), known: readLive, options: Hooked(), expected: runs},
		{name: "R4 a pod uses it", volume: recycled(), known: Proving(Knowing(user), DataKey, AKey, pods, detached), options: Hooked(), expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"Volume is used by pods: default/web-0"}, retry: decision.RetryBackoff},
		{name: "R4 X9 of very many pods the first ones", volume: recycled(), known: Proving(Knowing(thousands...), DataKey, AKey, pods, detached), options: Hooked(), expected: "R4 Wait", events: used,
			says: []string{"default/web-1008, default/web-1009 and 2990 more"}, retry: decision.RetryBackoff},
		{name: "R4 a pod that came since it was scrubbed: not free yet", volume: recycled(), known: Answering(Proving(Knowing(user), DataKey, AKey, pods, detached), reclaimed(decision.RunRecycler, "hostPath", nil)), options: Hooked(),
			expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: decision.RetryBackoff},
		{name: "R4 a pod that has finished", volume: recycled(), known: Proving(Knowing(PodUsing("done", PodPhase(corev1.PodFailed))), DataKey, AKey, pods, detached), options: Hooked(), expected: runs},
		{name: "R4 a claim of the name is there again: a pod that was started later is its own", volume: recycled(), known: besideAgain(Scheduled, startedAt(1_000_301)), options: Hooked(), expected: runs},
		{name: "R4 one that was not scheduled has no volume mounted", volume: recycled(), known: besideAgain(), options: Hooked(), expected: runs},
		{name: "R4 X3 one that was started before has the old volume", volume: recycled(), known: besideAgain(Scheduled, startedAt(999_999)), options: Hooked(), expected: "R4 Wait", events: used, retry: decision.RetryBackoff},
		{name: "R4 X3 one that was started a little later may have it, for its node has another clock", volume: recycled(), known: besideAgain(Scheduled, startedAt(1_000_300)), options: Hooked(), expected: "R4 Wait", events: used,
			says: []string{"Volume is used by pods: default/web-0"}, retry: decision.RetryBackoff},
		{name: "R4 X3 one of the same second may have it", volume: recycled(), known: besideAgain(Scheduled, startedAt(1_000_000)), options: Hooked(), expected: "R4 Wait", events: used, retry: decision.RetryBackoff},
		{name: "R4 X3 one of which that is not known may have it", volume: recycled(), known: besideAgain(Scheduled), options: Hooked(), expected: "R4 Wait", events: used, retry: decision.RetryBackoff},
		{name: "R4 X3 one that has finished has none", volume: recycled(), known: besideAgain(Scheduled, PodPhase(corev1.PodSucceeded)), options: Hooked(), expected: runs},
		{name: "R4 X2 the claim of the name has lost it, by a slip in the UID: its pods have it mounted, whenever they were started", volume: recycled(),
			known: Proving(Knowing(PodUsing("web-0", Scheduled, startedAt(1_000_301)), slipped), DataKey, AKey, pods, detached), options: Hooked(), expected: "R4 Wait", events: used, retry: decision.RetryBackoff},
		{name: "R4 a live list of pods, though a claim of the name is there again", volume: recycled(), known: Proving(Knowing(again), DataKey, AKey, detached), options: Hooked(), expected: "R4 Read pods/default"},
		{name: "R4 R1 migrated: not ours", volume: recycled(VolumeNote(MigratedTo, "csi.example.com")), known: readLive, options: Hooked(), expected: "R3 Wait"},

		{name: "R4 V4 scrubbed: free", volume: recycled(), known: answers(nil), options: Hooked(), expected: "R4 UpdateVolume pv/a: -spec.claimRef -annotation " + BoundBy + unannounced + letsGo, events: scrubbed},
		{name: "R4 V4 scrubbed: a person's reservation stays", volume: Orphan(corev1.PersistentVolumeReclaimRecycle), known: answers(nil), options: Hooked(), expected: "R4 UpdateVolume pv/a: spec.claimRef={default/data}" + unannounced + letsGo, events: scrubbed},
		{name: "R4 the answer to another volume of the name does not count", volume: recycled(func(v *corev1.PersistentVolume) { v.UID = "uid-9" }), known: answers(nil), options: Hooked(), expected: runs},
		{name: "R4 it failed", volume: recycled(), known: answers(ErrBroken), options: Hooked(), expected: fails, events: failed, says: []string{"the disk is broken"}},
		{name: "R4 W6 it failed again", volume: recycled(FailedFor("the disk is broken")), known: answers(ErrBroken), options: Hooked(), expected: "R4 Wait", retry: decision.RetryBackoff},
		{name: "Rh R4 refused for good", volume: recycled(FailedFor("the disk is broken")), known: answers(Meaning(hooks.Refused)), options: Hooked(), expected: "R4 Wait"},
		{name: "Rh in progress", volume: recycled(), known: answers(InProgress(time.Second)), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "R8 W6 X10 the call would have come too late: the phase stays", volume: recycled(), known: answers(Meaning(hooks.TooLate)), options: Hooked(), expected: "R8 Wait", events: failed, says: []string{"the disk is broken"}, retry: decision.RetryBackoff},
		{name: "Rh R4 in use keeps the phase", volume: recycled(), known: answers(Meaning(hooks.InUse)), options: Hooked(), expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"the disk is broken"}, retry: decision.RetryBackoff},
		{name: "R4 no recycler for its source", volume: recycled(func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}}
		}), known: readLive, options: Hooked(),
			expected: `R4 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: no recycler for nfs volumes is registered" status.phase=Failed status.reason=VolumeFailedRecycle`, events: failed},
	})
}

func TestR6FinalizersOfWhatOwnMade(t *testing.T) {
	used := Knowing(KnownClaim(BoundTo("a")))
	holds := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append([]VolumeEdit{BoundToClaim, OnHostPath, InPhase(corev1.VolumeBound), VolumeNote(ProvisionedBy, Own)}, edits...)...)
	}
	remove, retain, recycle := WithPolicy(corev1.PersistentVolumeReclaimDelete), WithPolicy(corev1.PersistentVolumeReclaimRetain), WithPolicy(corev1.PersistentVolumeReclaimRecycle)
	gets, loses, bound := "R6 UpdateVolume pv/a: +finalizer "+InTreeFinalizer, "R6 UpdateVolume pv/a: -finalizer "+InTreeFinalizer, "V2 Nothing"
	bySource := func(v *corev1.PersistentVolume) { delete(v.Annotations, ProvisionedBy) }
	runDecisions(t, []decisionTest{
		{name: "R6 Delete has it", volume: holds(remove), known: used, options: Hooked(), expected: gets},
		{name: "R6 Delete keeps it", volume: holds(remove, VolumeFinalizers(InTreeFinalizer)), known: used, options: Hooked(), expected: bound},
		{name: "R6 Retain has it not", volume: holds(retain, VolumeFinalizers("theirs", InTreeFinalizer)), known: used, options: Hooked(), expected: loses},
		{name: "R6 R8 an announcement stays", volume: holds(retain, VolumeFinalizers("theirs", InTreeFinalizer), announcedBy("me", false)), known: used, options: Hooked(), expected: loses},
		{name: "R6 Recycle has it not", volume: holds(recycle, VolumeFinalizers(InTreeFinalizer)), known: used, options: Hooked(), expected: loses},
		{name: "R6 an unknown policy: hands off", volume: holds(WithPolicy("Burn"), VolumeFinalizers(InTreeFinalizer)), known: used, options: Hooked(), expected: bound},
		{name: "R6 the external one is not ours to take", volume: holds(remove, VolumeFinalizers(ExternalFinalizer, InTreeFinalizer)), known: used, options: Hooked(), expected: bound},
		{name: "R6 not registered: hands off", volume: holds(remove), known: used, expected: bound},
		{name: "R6 only a provisioner registered, which cannot delete: hands off", volume: holds(remove), known: used, options: Hooked(WithoutDeleters), expected: bound},
		{name: "R6 nobody made it: hands off", volume: holds(remove, bySource), known: used, options: Hooked(), expected: bound},
		{name: "R6 being deleted: nothing is added", volume: holds(remove, BeingDeleted), known: used, options: Hooked(), expected: bound},
		{name: "R6 before it is reclaimed", volume: MadeByOwn(VolumeFinalizers()), known: Proving(decision.Snapshot{}, DataKey, AKey, detached), options: Hooked(), expected: gets},
	}, func(row *decisionTest) { row.fresh = true })
}

// TestR3WhatADeleterIsGiven is the volume as it is stored, which the preconditions of the deletion are made of.
func TestR3WhatADeleterIsGiven(t *testing.T) {
	row := decisionTest{volume: MadeByOwn(), known: Proving(decision.Snapshot{}, DataKey, AKey, detached), options: Hooked()}.complete()
	action, err := row.decide()
	require.NoError(t, err)
	assert.Equal(t, row.volume, action.Volume)
	assert.Equal(t, int64(7), action.Token, "R8")
	assert.Equal(t, types.UID("uid-of-volume"), action.Volume.UID, "R3")
	assert.Equal(t, "8", action.Volume.ResourceVersion, "R3")
}
