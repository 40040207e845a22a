package decision_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// P2: an announcement on the claim says that what was made for it may be deleted, and yet there is its volume.
func TestP2AVolumeThatMayHaveLostItsStorage(t *testing.T) {
	there := func(edits ...VolumeEdit) decision.Snapshot {
		return Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, append([]VolumeEdit{OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy, VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes")}, edits...)...))
	}
	announced := func(by string, token int64) ClaimEdit {
		return func(claim *corev1.PersistentVolumeClaim) {
			reclaim.Announce(claim, reclaim.Announcement{By: by, Token: token, Seconds: 120})
		}
	}
	deletedBy := func(by string) ClaimEdit {
		return func(claim *corev1.PersistentVolumeClaim) {
			reclaim.Announce(claim, reclaim.Announcement{By: by, Token: 7, Seconds: 120, Done: true})
		}
	}
	bare := func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = nil }
	ours, anew := Hooked(), announced("me", 7)
	ours.Identity = "me"
	inThisSync := func(known decision.Snapshot, live ...obj.Key) decision.Snapshot {
		return Proving(Answering(known, decision.Answer{Of: decision.UpdateClaim, For: "uid-1", Token: 7}), live...)
	}
	told := []string{"Warning ProvisioningFailed pvc/default/data", "Warning ProvisioningFailed pv/pvc-uid-1"}
	const finishes = "B3 UpdateClaim pvc/default/data: spec.volumeName=pvc-uid-1 +annotation " + Completed + " +annotation " + BoundBy
	retaining := func(class *storagev1.StorageClass) { class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) }
	retains := KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, WithPolicy(corev1.PersistentVolumeReclaimRetain), InPhase(corev1.VolumeBound), VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes"))
	kept, deleting := VolumeFinalizers(InTreeFinalizer, VolumeProtection), func(v *corev1.PersistentVolume) { BeingDeleted(v) }
	runDecisions(t, []decisionTest{
		{name: "P2 R8 announced anew, before it is deleted", claim: ProvisioningClaim(announced("me", 7)), known: there(), expected: announcesAnew},
		{name: "P2 R8 that it was deleted stays noted, or the deleter would be called for what may have data by now", claim: ProvisioningClaim(deletedBy("me")), known: there(),
			expected: "R8 UpdateClaim pvc/default/data: annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":8,\"seconds\":120,\"done\":true}"`},
		{name: "P2 R8 the claim is read live then", claim: ProvisioningClaim(anew), known: inThisSync(there()), expected: "R8 Read pvc/default/data"},
		{name: "P2 R3 it is deleted, with its UID and resourceVersion", claim: ProvisioningClaim(anew), known: inThisSync(there(), DataKey), expected: "P2 DeleteVolume pv/pvc-uid-1"},
		{name: "P2 then its finalizers go, and those of no other", claim: ProvisioningClaim(anew), known: inThisSync(there(deleting, VolumeFinalizers(InTreeFinalizer, VolumeProtection, "theirs")), DataKey),
			expected: "P2 UpdateVolume pv/pvc-uid-1: -finalizer " + InTreeFinalizer + " -finalizer " + VolumeProtection},
		{name: "P2 X10 others keep it: told", claim: ProvisioningClaim(anew), known: inThisSync(there(deleting, VolumeFinalizers("theirs")), DataKey), expected: "P2 Wait", events: told, says: []string{`"pvc-uid-1"`, "finalizers of others"}},
		{name: "P2 X10 nothing can be announced any more: told", claim: ProvisioningClaim(announced("me", math.MaxInt64)), known: there(), expected: "P2 Wait", events: told, says: []string{"remove the annotation"}},
		{name: "P2 X2 X10 somebody has retained it since: it stays, and that is told", claim: ProvisioningClaim(anew), known: inThisSync(there(WithPolicy(corev1.PersistentVolumeReclaimRetain)), DataKey), expected: "P2 Wait", events: told,
			says: []string{"Retain since it was stored", reclaim.AnnouncementAnnotation}},
		{name: "P2 X2 nor where no cache shows its class", claim: ProvisioningClaim(anew), known: inThisSync(Knowing(retains), DataKey), expected: "P2 Wait", events: told},
		{name: "P2 but not if its class says so", claim: ProvisioningClaim(anew), known: inThisSync(Knowing(ClassOf("fast", Own, retaining), retains), DataKey), expected: "P2 DeleteVolume pv/pvc-uid-1"},
		{name: "P2 R8 it may lose it just now", claim: ProvisioningClaim(announced("another", 7)), known: there(), expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "P2 what this sync has stored is newer", claim: ProvisioningClaim(announced("me", 7)), known: Answering(there(), Stored("uid-of-volume", 7)), expected: finishes + unannounced + " -finalizer " + decision.ProvisioningFinalizer},
		{name: "P2 but not if it was provisioned before another announced that", claim: ProvisioningClaim(announced("another", 7)), known: Answering(there(), Stored("uid-of-volume", 0)), expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "P2 nor if that was announced anew since", claim: ProvisioningClaim(announced("me", 7)), known: Answering(there(), Stored("uid-of-volume", 6)), expected: announcesAnew},
		{name: "P2 unless that is gone, and another has come", claim: ProvisioningClaim(announced("me", 7)), known: Answering(there(), Stored("uid-9", 7)), expected: announcesAnew},
		{name: "P2 a failure stores nothing", claim: ProvisioningClaim(announced("me", 7)), known: Answering(there(), NotStored(ErrBroken)), expected: announcesAnew},
		{name: "P2 a volume of another claim is left", claim: ProvisioningClaim(anew), known: inThisSync(there(RefersToOther), DataKey, OwnKey), expected: "P2 Wait", events: []string{"Warning ProvisioningFailed pvc/default/data"}, retry: decision.RetryBackoff},
		{name: "P2 nothing was announced: it is the claim's", claim: ProvisioningClaim(), known: there(kept), expected: finishes + " -finalizer " + decision.ProvisioningFinalizer},
		{name: "P2 X2 nor is one unsure that a person has made", claim: ProvisioningClaim(announced("me", 7)), known: there(func(v *corev1.PersistentVolume) { delete(v.Annotations, BoundBy) }), expected: finishes + unannounced + " -finalizer " + decision.ProvisioningFinalizer},
		{name: "P2 nor is another's volume unsure", claim: ProvisioningClaim(announced("me", 7), bare), known: there(VolumeNote(ProvisionedBy, "their.example.com")), expected: finishes + unannounced},
		{name: "P2 the finalizer is put on again that was taken off", claim: ProvisioningClaim(announced("me", 7), bare, ClaimNote(Provisioner, "their.example.com")), known: there(),
			expected: "P3 UpdateClaim pvc/default/data: annotation " + Provisioner + "=" + Own + " +finalizer " + decision.ProvisioningFinalizer},
	}, func(row *decisionTest) { row.options, row.fresh = ours, true })

	other, undeletable := ours, Hooked(WithoutDeleters)
	other.Hooks.Provisioners, undeletable.Identity = nil, "me"
	runDecisions(t, []decisionTest{
		{name: "P2 X2 a controller that could not provision it anew leaves it, and says so", claim: ProvisioningClaim(announced("me", 7)), known: there(), options: other, expected: "P2 Wait",
			events: told, says: []string{"a controller that has the provisioner", Own}, fresh: true},
		{name: "P2 what nobody could delete has its storage", claim: ProvisioningClaim(announced("me", 7), bare), known: there(), options: undeletable, expected: finishes + unannounced, fresh: true},
	})
}

// R8: what was called may go on, whatever it answered. What is made meanwhile would be deleted with its data.
func TestP2NothingIsMadeWhileItMayBeDeleted(t *testing.T) {
	absent := Proving(Knowing(ClassOf("fast", Own)), OwnKey)
	announced := func(by string, done bool, edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return ProvisioningClaim(append(edits, func(claim *corev1.PersistentVolumeClaim) {
			reclaim.Announce(claim, reclaim.Announcement{By: by, Token: 7, Seconds: 120, Done: done})
		})...)
	}
	inThisSync := func(called ...decision.Answer) decision.Snapshot {
		for i := range called {
			called[i].Token = 7
		}
		return Proving(Answering(absent, append(called, decision.Answer{Of: decision.UpdateClaim, For: "uid-1", Token: 7})...), OwnKey, DataKey)
	}
	options, bare := Hooked(), Hooked(WithoutDeleters)
	options.Identity, bare.Identity = "me", "me"
	outwaited := absent
	outwaited.Announced = map[obj.Key]metav1.Time{DataKey: {Time: outwaited.Now.Add(-time.Hour)}}
	goesOn, deleted := DeletedAgain(InProgress(time.Minute)), DeletedAgain(nil)
	old := DeletedAgain(nil)
	fails := DeletedAgain(ErrBroken)
	fails.Token = 7
	failedBefore := Proving(Answering(Knowing(ClassOf("fast", "their.example.com"), KnownVolume(OwnKey.Name, OfClass("fast"), RefersToOther)), fails, decision.Answer{Of: decision.UpdateClaim, For: "uid-1", Token: 7}), OwnKey)
	first := "P2 deleted first"
	failed := []string{failedOwn}
	runDecisions(t, []decisionTest{
		{name: first + ": announced anew, with a larger token", claim: announced("me", false), known: absent, expected: announcesAnew},
		{name: first + ": after another's announcement is over too", claim: announced("another", false), known: outwaited, expected: announcesAnew},
		{name: first + ": not before that", claim: announced("another", false), known: absent, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: first + ": called", claim: announced("me", false), known: inThisSync(), expected: deletesOwn},
		{name: first + ": at work", claim: announced("me", false), known: inThisSync(goesOn), expected: "P2 Wait", events: failed, says: []string{"deleted first"}, retry: decision.RetryAfter},
		{name: first + ": it fails", claim: announced("me", false), known: inThisSync(DeletedAgain(ErrBroken)), expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
		{name: first + ": that is noted", claim: announced("me", false), known: inThisSync(deleted), expected: "R8 UpdateClaim pvc/default/data: " + notedDone},
		{name: first + ": then it is made anew", claim: announced("me", true), known: inThisSync(deleted), expected: runsOwn},
		{name: first + ": not while its deleter is at work, whoever takes the announcement off", claim: ProvisioningClaim(), known: inThisSync(goesOn), expected: "P2 Wait", events: failed, retry: decision.RetryAfter},
		{name: first + ": by a later sync, too", claim: announced("me", true), known: inThisSync(), expected: runsOwn},
		{name: first + ": nobody has announced it", claim: ProvisioningClaim(), known: inThisSync(), expected: runsOwn},
		{name: first + ": nobody can", claim: announced("me", false), known: absent, options: bare, expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
		{name: first + ": nor that it is, of one that has failed", claim: announced("me", false, ClaimNote(Provisioner, Own)), known: failedBefore, expected: forgetsOwn},
		{name: first + ": not noted on another's announcement", claim: announced("me", false), known: Proving(Answering(absent, old), OwnKey, DataKey), expected: "P2 Wait", events: failed, retry: decision.RetryBackoff},
	}, func(row *decisionTest) {
		row.fresh = true
		if row.options.Identity == "" {
			row.options = options
		}
	})
}
