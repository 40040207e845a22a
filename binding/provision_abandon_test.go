package binding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestP2AClaimThatNeedsNoVolumeAnyMore(t *testing.T) {
	fast := knowing(classOf("fast", own))
	absent, classless := proving(fast, ownKey), proving(knowing(), ownKey)
	leaving := provisioningClaim(claimBeingDeleted)
	exists := func(edits ...volumeEdit) binding.Snapshot {
		return proving(knowing(classOf("fast", own), knownVolume(ownKey.Name, append([]volumeEdit{ofClass("fast")}, edits...)...)), ownKey)
	}
	elsewhere := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return provisioningClaim(append([]claimEdit{boundTo("a")}, edits...)...)
	}
	bound := proving(knowing(classOf("fast", own), knownVolume("a", ofClass("fast"), held, inPhase(corev1.VolumeBound))), ownKey)
	cached := bound
	cached.Live = nil
	theirs := proving(knowing(classOf("fast", "their.example.com")), ownKey)
	both := hooked(func(names *binding.HookNames) {
		names.Provisioners, names.Deleters = sets.New(own, "their.example.com"), sets.New(own, "their.example.com")
	})
	protected := hooked()
	protected.Protection = binding.ProtectionOn
	byTheirs := binding.Answer{Of: binding.RunDeleter, Hook: "their.example.com", For: "uid-1"}
	ofOther := binding.Answer{Of: binding.RunDeleter, Hook: own, For: "uid-9"}
	waits := "run a controller that has it"
	ownBound := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return provisioningClaim(append([]claimEdit{boundTo(ownKey.Name)}, edits...)...)
	}
	runDecisions(t, []decision{
		{name: "P2 deleted before its volume is stored: a live read first", claim: leaving, known: fast, rules: hooked(), want: readsOwn},
		{name: "P2 a cache that knows the volume proves nothing", claim: leaving, known: knowing(knownVolume(ownKey.Name, held)), rules: hooked(), want: readsOwn},
		{name: "P2 there is none: what may have been made is deleted", claim: leaving, known: absent, rules: hooked(), want: deletesOwn},
		{name: "P2 even if the class is gone", claim: leaving, known: classless, rules: hooked(), want: deletesOwn},
		{name: "P2 even if the class has another provisioner", claim: leaving, known: theirs, rules: hooked(), want: deletesOwn},
		{name: "P2 even after its provisioner has answered", claim: leaving, known: answering(absent, made(madeVolume())), rules: hooked(), want: deletesOwn},
		{name: "P2 deleted: the finalizer goes", claim: leaving, known: answering(absent, deletedAgain(nil)), rules: hooked(), want: forgetsOwn},
		{name: "P2 those of others stay", claim: provisioningClaim(claimBeingDeleted, claimFinalizers("theirs", provisioningFinalizer)), known: answering(absent, deletedAgain(nil)), rules: hooked(), want: forgetsOwn},
		{name: "P2 W6 it cannot be deleted", claim: leaving, known: answering(absent, deletedAgain(errBroken)), rules: hooked(), want: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}, retry: binding.RetryBackoff},
		{name: "Rh P2 it refuses for good", claim: leaving, known: answering(absent, deletedAgain(meaning(binding.HookRefused))), rules: hooked(), want: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}},
		{name: "Rh P2 in use", claim: leaving, known: answering(absent, deletedAgain(meaning(binding.HookInUse))), rules: hooked(), want: "P2 Wait", events: []string{cleanupOf}, says: []string{"the disk is broken"}, retry: binding.RetryBackoff},
		{name: "Rh P2 in progress", claim: leaving, known: answering(absent, deletedAgain(inProgress(time.Minute))), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "P2 the success of another's deleter does not count", claim: leaving, known: answering(absent, byTheirs), rules: both, want: deletesOwn},
		{name: "P2 nor one for another claim", claim: leaving, known: answering(absent, ofOther), rules: hooked(), want: deletesOwn},
		{name: "P2 the volume is stored and its claim's: it stands for the storage, V3 follows", claim: leaving, known: exists(held), rules: hooked(), want: forgetsOwn},
		{name: "P2 the volume is stored and nobody's: the same", claim: leaving, known: exists(), rules: hooked(), want: forgetsOwn},
		{name: "P2 the volume is stored, and nobody could delete its storage: the same", claim: leaving, known: exists(held), want: forgetsOwn},
		{name: "P2 a binder without hooks waits for the one that has them", claim: leaving, known: absent, want: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, own}},
		{name: "C10 C12 its volume is gone: it is Lost meanwhile", claim: elsewhere(claimBeingDeleted), known: proving(fast, ownKey, obj.VolumeKey("a")),
			want: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost", events: []string{"Warning ClaimLost pvc/default/data"}},
		{name: "C10 C12 P2 and then it waits on", claim: elsewhere(claimBeingDeleted, lost), known: proving(fast, ownKey, obj.VolumeKey("a")), want: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, own}},
		{name: "C11 C12 P2 its volume lost its claimRef: it is bound again meanwhile", claim: elsewhere(claimBeingDeleted), known: proving(knowing(knownVolume("a", ofClass("fast"))), ownKey),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "P2 so does one that lost its deleter", claim: leaving, known: absent, rules: hooked(withoutDeleters), want: "P2 Wait", events: []string{cleanupOf}, says: []string{waits, own}},
		{name: "F2 P2 the protection goes on its own", claim: provisioningClaim(claimBeingDeleted, claimFinalizers(claimProtection, provisioningFinalizer)), known: proving(fast, obj.PodsKey("default")), rules: protected,
			want: "F2 UpdateClaim pvc/default/data: -finalizer " + claimProtection},
		{name: "F2 P2 while a pod uses it, the storage goes before it", claim: provisioningClaim(claimBeingDeleted, claimFinalizers(claimProtection, provisioningFinalizer)), known: proving(knowing(podUsing("web-0", scheduled)), ownKey), rules: protected, want: deletesOwn},

		{name: "P2 B3 bound to its own volume: the finalizer goes in the write that binds it", claim: provisioningClaim(), known: knowing(classOf("fast", own), knownVolume(ownKey.Name, ofClass("fast"), held, inPhase(corev1.VolumeBound))), rules: hooked(),
			want: "B3 UpdateClaim pvc/default/data: spec.volumeName=pvc-uid-1 +annotation " + completed + " +annotation " + boundBy + " -finalizer " + provisioningFinalizer},
		{name: "P2 B3 by a binder without hooks too", claim: provisioningClaim(), known: knowing(classOf("fast", own), knownVolume(ownKey.Name, ofClass("fast"), held, inPhase(corev1.VolumeBound))),
			want: "B3 UpdateClaim pvc/default/data: spec.volumeName=pvc-uid-1 +annotation " + completed + " +annotation " + boundBy + " -finalizer " + provisioningFinalizer},
		{name: "P2 B3 not in the one that binds it to another: something may have been made", claim: provisioningClaim(), known: knowing(classOf("fast", own), knownVolume("a", ofClass("fast"), held, inPhase(corev1.VolumeBound))), rules: hooked(),
			want: "B3 UpdateClaim pvc/default/data: spec.volumeName=a +annotation " + completed + " +annotation " + boundBy},
		{name: "P2 bound to another volume: a live read first", claim: elsewhere(), known: cached, rules: hooked(), want: readsOwn},
		{name: "P2 bound to another volume: what may have been made is deleted", claim: elsewhere(), known: bound, rules: hooked(), want: deletesOwn},
		{name: "P2 bound to another volume: deleted, the finalizer goes", claim: elsewhere(), known: answering(bound, deletedAgain(nil)), rules: hooked(), want: forgetsOwn},
		{name: "P2 bound to another volume, not yet in full: B4 comes first", claim: elsewhere(claimPhase(corev1.ClaimPending)), known: bound, rules: hooked(),
			want: "B4 UpdateClaimStatus pvc/default/data: status.phase=Bound"},
		{name: "P2 another binder bound it to its own volume and left the finalizer", claim: ownBound(), known: exists(held, inPhase(corev1.VolumeBound)), rules: hooked(), want: forgetsOwn},
		{name: "P2 X2 that volume is gone, which once stood for the storage: nothing is deleted", claim: ownBound(claimBeingDeleted, claimPhase(corev1.ClaimLost)), known: absent, rules: hooked(), want: forgetsOwn},

		{name: "P2 the class has another provisioner now: a live read first", claim: provisioningClaim(), known: knowing(classOf("fast", "their.example.com")), rules: hooked(), want: readsOwn},
		{name: "P2 the class has another provisioner now: what may have been made is deleted", claim: provisioningClaim(), known: theirs, rules: hooked(), want: deletesOwn},
		{name: "P2 the class has another provisioner now: the finalizer goes", claim: provisioningClaim(), known: answering(theirs, made(madeVolume()), deletedAgain(nil)), rules: hooked(), want: forgetsOwn},
		{name: "P2 P3 and then the other one is asked", claim: provisioningClaim(claimFinalizers()), known: answering(theirs, made(madeVolume()), deletedAgain(nil)), rules: hooked(),
			want: "P3 UpdateClaim pvc/default/data: annotation " + betaProvisioner + "=their.example.com annotation " + provisioner + "=their.example.com"},
		{name: "P2 which may be one of ours", claim: provisioningClaim(claimNote(provisioner, "their.example.com"), claimNote(betaProvisioner, "their.example.com")), known: answering(theirs, made(madeVolume()), deletedAgain(nil)), rules: both,
			want: "P2 RunProvisioner pv/pvc-uid-1 by their.example.com"},
		{name: "P2 the class has another provisioner now, and a volume is there: it is the claim's", claim: provisioningClaim(), known: proving(knowing(classOf("fast", "their.example.com"), knownVolume(ownKey.Name, ofClass("fast"), held)), ownKey), rules: hooked(),
			want: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
		{name: "P1 the class is gone: it may come again", claim: provisioningClaim(), known: classless, rules: hooked(), want: "P1 Wait", events: []string{failedOwn}},
	})
}

// TestP2WhatADeleterIsToldOfAClaim is about storage that no volume was ever stored for.
func TestP2WhatADeleterIsToldOfAClaim(t *testing.T) {
	claim := provisioningClaim(claimBeingDeleted)
	for name, test := range map[string]struct {
		answers []binding.Answer
		path    string
	}{
		"by name and claim alone":              {nil, ""},
		"with what its provisioner said":       {[]binding.Answer{made(madeVolume())}, "/pool/pvc-uid-1"},
		"nothing of what another made":         {[]binding.Answer{{Of: binding.RunProvisioner, Hook: "their.example.com", For: "uid-1", Volume: madeVolume()}}, ""},
		"nothing of what was made for another": {[]binding.Answer{{Of: binding.RunProvisioner, Hook: own, For: "uid-9", Volume: madeVolume()}}, ""},
	} {
		t.Run("P2 "+name, func(t *testing.T) {
			action, err := binding.NextForClaim(claim, answering(proving(knowing(claim), ownKey), test.answers...), hooked())
			require.NoError(t, err)
			require.Equal(t, binding.RunDeleter, action.Kind)
			assert.Equal(t, "pvc-uid-1", action.Volume.Name)
			assert.Equal(t, claim.UID, action.Volume.Spec.ClaimRef.UID)
			assert.Equal(t, map[string]string{boundBy: "yes", provisionedBy: own}, action.Volume.Annotations)
			assert.Empty(t, action.Volume.UID)
			if test.path == "" {
				assert.Equal(t, corev1.PersistentVolumeSource{}, action.Volume.Spec.PersistentVolumeSource)
			} else {
				assert.Equal(t, test.path, action.Volume.Spec.HostPath.Path)
			}
		})
	}
}
