package decision_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestP2AClaimThatNeedsNoVolumeAnyMore(t *testing.T) {
	fast := Knowing(ClassOf("fast", Own))
	absent, classless := Proving(fast, OwnKey), Proving(Knowing(), OwnKey)
	leaving := ProvisioningClaim(ClaimBeingDeleted)
	exists := func(edits ...VolumeEdit) decision.Snapshot {
		return Proving(Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, append([]VolumeEdit{OfClass("fast")}, edits...)...)), OwnKey)
	}
	elsewhere := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return ProvisioningClaim(append([]ClaimEdit{BoundTo("a")}, edits...)...)
	}
	bound := Proving(Knowing(ClassOf("fast", Own), KnownVolume("a", OfClass("fast"), BoundToClaim, VolumeNote(BoundBy, "yes"), InPhase(corev1.VolumeBound))), OwnKey)
	reserved := Proving(Knowing(ClassOf("fast", Own), KnownVolume("a", OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound))), OwnKey)
	cached := bound
	cached.LiveReads = nil
	theirs := Proving(Knowing(ClassOf("fast", "their.example.com")), OwnKey)
	both := Hooked(func(names *hooks.Names) {
		names.Provisioners, names.Deleters = sets.New(Own, "their.example.com"), sets.New(Own, "their.example.com")
	})
	protected := Hooked()
	protected.Protection = decision.ProtectionOn
	byTheirs := decision.Answer{Of: decision.RunDeleter, Hook: "their.example.com", For: "uid-1"}
	ofOther := decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-9"}
	waits := "run a controller that has it"
	ownBound := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return ProvisioningClaim(append([]ClaimEdit{BoundTo(OwnKey.Name)}, edits...)...)
	}
	runDecisions(t, []decisionTest{
		{name: "P2 deleted before its volume is stored: a live read first", claim: leaving, known: fast, options: Hooked(), expected: readsOwn},
		{name: "P2 a cache that knows the volume proves nothing", claim: leaving, known: Knowing(KnownVolume(OwnKey.Name, BoundToClaim)), options: Hooked(), expected: readsOwn},
		{name: "P2 there is none: what may have been made is deleted", claim: leaving, known: absent, options: Hooked(), expected: deletesOwn},
		{name: "P2 even if the class is gone", claim: leaving, known: classless, options: Hooked(), expected: deletesOwn},
		{name: "P2 even if the class has another provisioner", claim: leaving, known: theirs, options: Hooked(), expected: deletesOwn},
		{name: "P2 even after its provisioner has answered", claim: leaving, known: Answering(absent, Made(MadeVolume())), options: Hooked(), expected: deletesOwn},
		{name: "P2 deleted: the finalizer goes", claim: leaving, known: Answering(absent, DeletedAgain(nil)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 C6 it names another volume, and waits for that: the same", claim: ProvisioningClaim(Naming("later")), known: absent, options: Hooked(), expected: deletesOwn},
		{name: "P2 C6 X2 and its own is another's by now: nothing is left to remember", claim: ProvisioningClaim(Naming("later")), known: exists(RefersTo("shop", "b", "uid-b")), options: Hooked(), expected: forgetsOwn},
		{name: "P2 C6 which a live read has to show", claim: ProvisioningClaim(Naming("later")), known: Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, RefersTo("shop", "b", "uid-b"))), options: Hooked(), expected: readsOwn},
		{name: "P2 C6 it names what is being made for it", claim: ProvisioningClaim(Naming(OwnKey.Name)), known: absent, options: Hooked(), expected: "C6 Wait"},
		{name: "P2 C6 nor does it know that it was bound", claim: ProvisioningClaim(Naming("later"), ClaimNote(Completed, "yes"), ClaimPhase(corev1.ClaimLost)), known: Proving(absent, obj.VolumeKey("later")), options: Hooked(), expected: "C10 Nothing"},
		{name: "P2 those of others stay", claim: ProvisioningClaim(ClaimBeingDeleted, ClaimFinalizers("theirs", ProvisioningFinalizer)), known: Answering(absent, DeletedAgain(nil)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 W6 it cannot be deleted", claim: leaving, known: Answering(absent, DeletedAgain(ErrBroken)), options: Hooked(), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}, retry: decision.RetryBackoff},
		{name: "Rh P2 it refuses for good", claim: leaving, known: Answering(absent, DeletedAgain(Meaning(hooks.Refused))), options: Hooked(), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}},
		{name: "Rh P2 in use", claim: leaving, known: Answering(absent, DeletedAgain(Meaning(hooks.InUse))), options: Hooked(), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}, retry: decision.RetryBackoff},
		{name: "R8 P2 it would have come too late", claim: leaving, known: Answering(absent, DeletedAgain(Meaning(hooks.TooLate))), options: Hooked(), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}, retry: decision.RetryBackoff},
		{name: "Rh P2 in progress", claim: leaving, known: Answering(absent, DeletedAgain(InProgress(time.Minute))), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "P2 the success of another's deleter does not count", claim: leaving, known: Answering(absent, byTheirs), options: both, expected: announcesAnew},
		{name: "P2 nor one for another claim", claim: leaving, known: Answering(absent, ofOther), options: Hooked(), expected: deletesOwn},
		{name: "P2 the volume is stored and its claim's: it stands for the storage, V3 follows", claim: leaving, known: exists(BoundToClaim), options: Hooked(), expected: forgetsOwn},
		{name: "P2 the volume is stored and nobody's: the same", claim: leaving, known: exists(), options: Hooked(), expected: forgetsOwn},
		{name: "P2 the volume is stored, and nobody could delete its storage: the same", claim: leaving, known: exists(BoundToClaim), expected: forgetsOwn},
		{name: "P2 a binder without hooks waits for the one that has them", claim: leaving, known: absent, expected: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, Own}},
		{name: "C10 C12 its volume is gone: it is Lost meanwhile", claim: elsewhere(ClaimBeingDeleted), known: Proving(fast, OwnKey, obj.VolumeKey("a")),
			expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost", events: []string{"Warning ClaimLost pvc/default/data"}},
		{name: "P2 X9 no provisioner has so long a name", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, longest+"/"+longest), ClaimFinalizers(decision.ProvisioningFinalizer), ClaimBeingDeleted), known: absent, options: Hooked(),
			expected: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, `"` + longest + `…"`}},
		{name: "C10 C12 P2 and then it waits on", claim: elsewhere(ClaimBeingDeleted, Lost), known: Proving(fast, OwnKey, obj.VolumeKey("a")), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, Own}},
		{name: "C11 C12 P2 its volume lost its claimRef: it is bound again meanwhile", claim: elsewhere(ClaimBeingDeleted), known: Proving(Knowing(KnownVolume("a", OfClass("fast"))), OwnKey, DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "P2 so does one that lost its deleter", claim: leaving, known: absent, options: Hooked(WithoutDeleters), expected: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, Own}},
		{name: "F2 P2 the protection goes on its own", claim: ProvisioningClaim(ClaimBeingDeleted, ClaimFinalizers(ClaimProtection, ProvisioningFinalizer)), known: Proving(fast, obj.PodsKey("default")), options: protected,
			expected: "F2 UpdateClaim pvc/default/data: -finalizer " + ClaimProtection},
		{name: "F2 P2 while a pod uses it, the storage goes before it", claim: ProvisioningClaim(ClaimBeingDeleted, ClaimFinalizers(ClaimProtection, ProvisioningFinalizer)), known: Proving(Knowing(PodUsing("web-0", Scheduled)), OwnKey), options: protected, expected: deletesOwn},

		{name: "P2 B3 bound to its own volume: the finalizer goes in the write that binds it", claim: ProvisioningClaim(), known: Answering(Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound))), Stored("uid-of-volume", 7)), options: Hooked(),
			expected: "B3 UpdateClaim pvc/default/data: spec.volumeName=pvc-uid-1 +annotation " + Completed + " +annotation " + BoundBy + unannounced + " -finalizer " + ProvisioningFinalizer},
		{name: "P2 B3 by a binder without hooks too", claim: ProvisioningClaim(), known: Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound))),
			expected: "B3 UpdateClaim pvc/default/data: spec.volumeName=pvc-uid-1 +annotation " + Completed + " +annotation " + BoundBy + " -finalizer " + ProvisioningFinalizer},
		{name: "P2 B3 not in the one that binds it to another: something may have been made", claim: ProvisioningClaim(), known: Knowing(ClassOf("fast", Own), KnownVolume("a", OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound))), options: Hooked(),
			expected: "B3 UpdateClaim pvc/default/data: spec.volumeName=a +annotation " + Completed + " +annotation " + BoundBy},
		{name: "P2 bound to another volume: a live read first", claim: elsewhere(), known: cached, options: Hooked(), expected: readsOwn},
		{name: "P2 bound to another volume: what may have been made is deleted", claim: elsewhere(), known: bound, options: Hooked(), expected: deletesOwn},
		{name: "P2 X2 bound to one that a person has reserved for it, perhaps of that storage: it is told, and not deleted", claim: elsewhere(), known: reserved, options: Hooked(), expected: forgetsOwn, events: []string{cleanupOf}},
		{name: "P2 X2 nor when it is deleted", claim: elsewhere(ClaimBeingDeleted), known: Proving(reserved, OwnKey, obj.VolumeKey("a")), options: Hooked(), expected: forgetsOwn, events: []string{cleanupOf}},
		{name: "P2 F2 C11 when it is deleted, its volume is read before the finalizer goes", claim: elsewhere(ClaimBeingDeleted), known: Answering(bound, DeletedAgain(nil)), options: Hooked(), expected: "F2 Read pv/a"},
		{name: "P2 F2 C11 and then it goes", claim: elsewhere(ClaimBeingDeleted), known: Answering(Proving(bound, OwnKey, obj.VolumeKey("a")), DeletedAgain(nil)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 bound to another volume: deleted, the finalizer goes", claim: elsewhere(), known: Answering(bound, DeletedAgain(nil)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 bound to another volume, not yet in full: B4 comes first", claim: elsewhere(ClaimPhase(corev1.ClaimPending)), known: bound, options: Hooked(),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.phase=Bound"},
		{name: "P2 another binder bound it to its own volume and left the finalizer", claim: ownBound(), known: exists(BoundToClaim, InPhase(corev1.VolumeBound)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 X2 that volume is gone, which once stood for the storage: nothing is deleted", claim: ownBound(ClaimBeingDeleted, ClaimPhase(corev1.ClaimLost)), known: absent, options: Hooked(), expected: forgetsOwn, events: []string{cleanupOf}},
		{name: "P2 X10 nor where its tenant has written that name alone, which is told", claim: ProvisioningClaim(ClaimBeingDeleted, Naming(OwnKey.Name)), known: absent, options: Hooked(), expected: forgetsOwn, events: []string{cleanupOf}},

		{name: "P2 the class has another provisioner now: a live read first", claim: ProvisioningClaim(), known: Knowing(ClassOf("fast", "their.example.com")), options: Hooked(), expected: readsOwn},
		{name: "P2 the class has another provisioner now: what may have been made is deleted", claim: ProvisioningClaim(), known: theirs, options: Hooked(), expected: deletesOwn},
		{name: "P2 the class has another provisioner now: the finalizer goes", claim: ProvisioningClaim(), known: Answering(theirs, Made(MadeVolume()), DeletedAgain(nil)), options: Hooked(), expected: forgetsOwn},
		{name: "P2 P3 and then the other one is asked", claim: ProvisioningClaim(ClaimFinalizers()), known: Answering(theirs, Made(MadeVolume()), DeletedAgain(nil)), options: Hooked(),
			expected: "P3 UpdateClaim pvc/default/data: annotation " + BetaProvisioner + "=their.example.com annotation " + Provisioner + "=their.example.com"},
		{name: "P2 which may be one of ours", claim: ProvisioningClaim(ClaimNote(Provisioner, "their.example.com"), ClaimNote(BetaProvisioner, "their.example.com")), known: Answering(theirs, Made(MadeVolume()), DeletedAgain(nil)), options: both,
			expected: "P2 RunProvisioner pv/pvc-uid-1 by their.example.com"},
		{name: "P2 the class has another provisioner now, and a volume is there: it is the claim's", claim: ProvisioningClaim(), known: Proving(Knowing(ClassOf("fast", "their.example.com"), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim)), OwnKey), options: Hooked(), fresh: true,
			expected: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
		{name: "P2 B2 which is read before it is Bound to what may have come late", claim: ProvisioningClaim(), known: Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, InPhase(corev1.VolumePending), VolumeNote(ProvisionedBy, Own))), options: Hooked(), fresh: true,
			expected: "B2 Read pvc/default/data"},
		{name: "P1 the class is gone: it may come again", claim: ProvisioningClaim(), known: classless, options: Hooked(), expected: "P1 Wait", events: []string{failedOwn}},
	})
}

// TestP2WhatADeleterIsToldOfAClaim is about storage that no volume was ever stored for.
func TestP2WhatADeleterIsToldOfAClaim(t *testing.T) {
	claim := ProvisioningClaim(ClaimBeingDeleted)
	for name, test := range map[string]struct {
		answers []decision.Answer
		path    string
	}{
		"by name and claim alone":              {nil, ""},
		"with what its provisioner said":       {[]decision.Answer{Made(MadeVolume())}, "/pool/pvc-uid-1"},
		"nothing of what another made":         {[]decision.Answer{{Of: decision.RunProvisioner, Hook: "their.example.com", For: "uid-1", Volume: MadeVolume()}}, ""},
		"nothing of what was made for another": {[]decision.Answer{{Of: decision.RunProvisioner, Hook: Own, For: "uid-9", Volume: MadeVolume()}}, ""},
	} {
		t.Run("P2 "+name, func(t *testing.T) {
			action, err := decisionTest{claim: claim, known: Answering(Proving(decision.Snapshot{}, OwnKey), test.answers...), options: Hooked()}.complete().decide()
			require.NoError(t, err)
			require.Equal(t, decision.RunDeleter, action.Kind)
			assert.Equal(t, "pvc-uid-1", action.Volume.Name)
			assert.Equal(t, claim.UID, action.Volume.Spec.ClaimRef.UID)
			assert.Equal(t, map[string]string{BoundBy: "yes", ProvisionedBy: Own}, action.Volume.Annotations)
			assert.Empty(t, action.Volume.UID)
			if test.path == "" {
				assert.Equal(t, corev1.PersistentVolumeSource{}, action.Volume.Spec.PersistentVolumeSource)
			} else {
				assert.Equal(t, test.path, action.Volume.Spec.HostPath.Path)
			}
		})
	}
}
