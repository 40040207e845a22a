package binding_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

var (
	aKey     = obj.VolumeKey("a")
	detached = obj.AttachmentsKey() // read live, that there is none
)

// reclaimed is the answer of a deleter or recycler to the volume of orphan.
func reclaimed(of binding.ActionKind, hook string, err error) binding.Answer {
	return binding.Answer{Of: of, Hook: hook, For: "uid-of-volume", Err: err}
}

func madeByOwn(edits ...volumeEdit) *corev1.PersistentVolume {
	return orphan(corev1.PersistentVolumeReclaimDelete, append([]volumeEdit{volumeNote(provisionedBy, own), volumeFinalizers(inTreeFinalizer)}, edits...)...)
}

func TestR3WhoDeletesTheStorage(t *testing.T) {
	proven := proving(binding.Snapshot{}, dataKey, aKey, detached)
	remove := corev1.PersistentVolumeReclaimDelete
	csi := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}
	}
	by := func(name string) volumeEdit { return volumeNote(provisionedBy, name) }
	failed := []string{"Warning VolumeFailedDelete pv/a"}
	inTree := hooked(func(names *binding.HookNames) { names.Deleters = sets.New("kubernetes.io/ours") })
	inTree.Migrations = storageclass.Migrations{}
	swapped := binding.Rules{Hooks: binding.HookNames{Deleters: sets.New("hostPath"), SourceDeleters: sets.New(own, "csi")}}
	byOwn, bySource := "R3 RunDeleter pv/a by "+own, "R3 RunDeleter pv/a by hostPath"
	runDecisions(t, []decision{
		{name: "R3 the one registered under provisioned-by", volume: madeByOwn(), known: proven, rules: hooked(), want: byOwn},
		{name: "R3 whatever its source", volume: madeByOwn(csi), known: proven, rules: hooked(), want: byOwn},
		{name: "R3 its source decides nothing beside it", volume: madeByOwn(by("their.example.com")), known: proven, rules: hooked(), want: "R3 Wait"},
		{name: "R3 an in-tree name that is registered", volume: madeByOwn(by("kubernetes.io/ours")), known: proven, rules: inTree, want: "R3 RunDeleter pv/a by kubernetes.io/ours"},
		{name: "R1 migrated: nobody of ours", volume: madeByOwn(by("kubernetes.io/cinder"), volumeNote(migratedTo, "cinder.csi.openstack.org")), known: proven, rules: hooked(func(n *binding.HookNames) { n.Deleters.Insert("kubernetes.io/cinder") }),
			want: "R6 UpdateVolume pv/a: -finalizer " + inTreeFinalizer},
		{name: "R1 migrated: not by source either", volume: orphan(remove, volumeNote(migratedTo, "csi.example.com")), known: proven, rules: hooked(), want: "R3 Wait"},
		{name: "R3 nobody made it: the one registered for its source", volume: orphan(remove), known: proven, rules: hooked(), want: bySource},
		{name: "R3 an empty provisioned-by is none", volume: orphan(remove, by("")), known: proven, rules: hooked(), want: bySource},
		{name: "R3 a CSI volume is its driver's", volume: orphan(remove, csi), known: proven, rules: swapped, want: "R3 Wait"},
		{name: "R3 the two sets are not each other's: a provisioner's name", volume: madeByOwn(), known: proven, rules: swapped, want: "R3 Wait"},
		{name: "R3 the two sets are not each other's: a source", volume: orphan(remove), known: proven, rules: swapped,
			want: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: no deleter for hostPath volumes is registered" status.phase=Failed status.reason=VolumeFailedDelete`, events: failed},
		{name: "R2 X2 Retain: none", volume: orphan(corev1.PersistentVolumeReclaimRetain, by(own)), known: proven, rules: hooked(), want: "R2 Nothing"},
		{name: "R2 X2 Retain, Failed before: none", volume: orphan(corev1.PersistentVolumeReclaimRetain, by(own), inPhase(corev1.VolumeFailed)), known: proven, rules: hooked(), want: "R2 Nothing"},
		{name: "R5 an unknown policy: none", volume: orphan("Burn", by(own), inPhase(corev1.VolumeFailed)), known: proven, rules: hooked(),
			want: `R5 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: persistentVolumeReclaimPolicy \"Burn\" is unknown" status.reason=VolumeUnknownReclaimPolicy`, events: []string{"Warning VolumeUnknownReclaimPolicy pv/a"}},
		{name: "R3 W6 Failed is tried again", volume: madeByOwn(inPhase(corev1.VolumeFailed)), known: proven, rules: hooked(), want: byOwn},
		{name: "R3 being deleted already", volume: madeByOwn(beingDeleted), known: proven, rules: hooked(), want: byOwn},
	})
}

func TestR3WhatMustBeProvenBeforeStorageIsDeleted(t *testing.T) {
	elsewhere := knownClaim(naming("b"))
	runDecisions(t, []decision{
		{name: "R3 V3 X2 the claim is gone: a live read", volume: madeByOwn(), known: proving(binding.Snapshot{}, aKey, detached), rules: hooked(), want: "V3 Read pvc/default/data"},
		{name: "R3 V3 X2 a cached claim of another UID proves nothing", volume: madeByOwn(), known: proving(knowing(knownClaim(ofUID("uid-9"))), aKey, detached), rules: hooked(), want: "V3 Read pvc/default/data"},
		{name: "R3 V3 the claim recreated, read live", volume: madeByOwn(), known: proving(knowing(knownClaim(ofUID("uid-9"))), aKey, dataKey, detached), rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R3 X2 the volume itself: a live read", volume: madeByOwn(), known: proving(binding.Snapshot{}, dataKey, detached), rules: hooked(), want: "R3 Read pv/a"},
		{name: "R3 X2 after its deleter's answer too", volume: madeByOwn(), known: answering(proving(binding.Snapshot{}, dataKey, detached), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "R3 Read pv/a"},
		{name: "R3 V3 X2 the claim too", volume: madeByOwn(), known: answering(proving(binding.Snapshot{}, aKey, detached), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "V3 Read pvc/default/data"},
		{name: "R3 V2 X2 the claim is there and has the volume: never", volume: madeByOwn(), known: proving(knowing(knownClaim(boundTo("a"))), dataKey, aKey, detached), rules: hooked(), want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "R3 V2 X2 the claim is there and has none yet: never", volume: madeByOwn(), known: answering(proving(knowing(knownClaim()), dataKey, aKey, detached), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "V2 HandOver pvc/default/data"},
		{name: "R3 V2 the claim has another volume", volume: madeByOwn(), known: proving(knowing(elsewhere, knownVolume("b", held)), aKey, obj.VolumeKey("b"), detached), rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R3 V2 that it has it is read live", volume: madeByOwn(), known: proving(knowing(elsewhere, knownVolume("b", held)), aKey, detached), rules: hooked(), want: "V2 Read pv/b"},
		{name: "R3 V2 X2 it has none: never", volume: madeByOwn(), known: proving(knowing(elsewhere), aKey, obj.VolumeKey("b"), detached), rules: hooked(), want: "V2 Wait",
			events: []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}},
		{name: "R3 V2 its storage is deleted, and then the other volume: it goes", volume: madeByOwn(),
			known: answering(proving(knowing(elsewhere), aKey, obj.VolumeKey("b"), detached), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 V2 Released first", volume: madeByOwn(inPhase(corev1.VolumeBound)), known: proving(knowing(elsewhere, knownVolume("b", held)), aKey, obj.VolumeKey("b"), detached), rules: hooked(), want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "R3 V3 Released first, when the claim is gone", volume: madeByOwn(inPhase(corev1.VolumeBound)), known: proving(binding.Snapshot{}, aKey, dataKey, detached), rules: hooked(), want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "R3 V1 X2 a person took the claimRef away: never", volume: madeByOwn(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }), known: answering(proving(binding.Snapshot{}, aKey, dataKey, detached), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(),
			want: "V1 UpdateVolumeStatus pv/a: status.phase=Available"},
	})
}

func TestR3TheOrderOfADeletion(t *testing.T) {
	proven := proving(binding.Snapshot{}, dataKey, aKey, detached)
	done := func(hook string) binding.Snapshot { return answering(proven, reclaimed(binding.RunDeleter, hook, nil)) }
	others := madeByOwn(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "uid-1"; v.UID = "uid-of-volume" })
	runDecisions(t, []decision{
		{name: "R3 first the storage", volume: madeByOwn(), known: proven, rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R3 then the object, with its UID and resourceVersion", volume: madeByOwn(), known: done(own), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 one that was Failed", volume: madeByOwn(inPhase(corev1.VolumeFailed)), known: done(own), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 one that nobody made", volume: orphan(corev1.PersistentVolumeReclaimDelete), known: done("hostPath"), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 then the finalizer", volume: madeByOwn(beingDeleted), known: done(own), rules: hooked(), want: "R3 UpdateVolume pv/a: -finalizer " + inTreeFinalizer},
		{name: "R3 and no other", volume: madeByOwn(beingDeleted, volumeFinalizers("theirs", inTreeFinalizer, volumeProtection)), known: done(own), rules: hooked(), want: "R3 UpdateVolume pv/a: -finalizer " + inTreeFinalizer},
		{name: "R3 then others let it go", volume: madeByOwn(beingDeleted, volumeFinalizers("theirs")), known: done(own), rules: hooked(), want: "R3 Nothing"},
		{name: "R3 R6 nothing is added to what is being deleted", volume: madeByOwn(beingDeleted, volumeFinalizers()), known: done(own), rules: hooked(), want: "R3 Nothing"},
		{name: "R3 the finalizer stays until the storage is deleted", volume: madeByOwn(beingDeleted), known: answering(proven, reclaimed(binding.RunDeleter, own, errBroken)), rules: hooked(),
			want: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedDelete`, events: []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "R3 the last answer counts", volume: others, known: answering(proven, reclaimed(binding.RunDeleter, own, errBroken), reclaimed(binding.RunDeleter, own, nil)), rules: hooked(), want: "R3 DeleteVolume pv/a"},
		{name: "R3 the answer of another deleter does not", volume: madeByOwn(), known: done("hostPath"), rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R3 nor one to another volume of the name", volume: madeByOwn(), known: answering(proven, binding.Answer{Of: binding.RunDeleter, Hook: own, For: "uid-9"}), rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R3 nor a recycler's", volume: madeByOwn(), known: answering(proven, reclaimed(binding.RunRecycler, own, nil)), rules: hooked(), want: "R3 RunDeleter pv/a by " + own},
		{name: "R2 X2 Retain since its storage was deleted: the object stays", volume: madeByOwn(withPolicy(corev1.PersistentVolumeReclaimRetain), volumeFinalizers()), known: done(own), rules: hooked(), want: "R2 Nothing"},
	})
}

// TestRhWhatADeleterMeans is about every answer there is, to a Released and to a Failed volume.
func TestRhWhatADeleterMeans(t *testing.T) {
	proven := proving(binding.Snapshot{}, dataKey, aKey, detached)
	fails := `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedDelete`
	failed, inUse := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Normal VolumeDelete pv/a"}
	broken := []string{"the disk is broken"}
	answers := func(err error) binding.Snapshot { return answering(proven, reclaimed(binding.RunDeleter, own, err)) }
	runDecisions(t, []decision{
		{name: "R3 it failed", volume: madeByOwn(), known: answers(errBroken), rules: hooked(), want: fails, events: failed, says: broken},
		{name: "R3 W6 it failed again", volume: madeByOwn(failedFor("the disk is broken")), known: answers(errBroken), rules: hooked(), want: "R3 Wait", retry: binding.RetryBackoff},
		{name: "R3 W6 N it failed for another reason", volume: madeByOwn(failedFor("the disk is broken")), known: answers(errors.New("busy")), rules: hooked(), want: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: busy" status.reason=VolumeFailedDelete`, events: failed, says: []string{"busy"}},
		{name: "R3 N another controller's message: it is said once, and kept", volume: madeByOwn(inPhase(corev1.VolumeFailed), func(v *corev1.PersistentVolume) { v.Status.Message = "their words" }), known: answers(errBroken), rules: hooked(),
			want: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.reason=VolumeFailedDelete`, events: failed},
		{name: "Rh R3 refused for good", volume: madeByOwn(), known: answers(meaning(binding.HookRefused)), rules: hooked(), want: fails, events: failed, says: broken},
		{name: "Rh R3 refused for good: not again", volume: madeByOwn(failedFor("the disk is broken")), known: answers(fmt.Errorf("%w", meaning(binding.HookRefused))), rules: hooked(), want: "R3 Wait"},
		{name: "Rh W6 in progress", volume: madeByOwn(), known: answers(inProgress(0)), rules: hooked(), want: "Rh Wait", retry: binding.RetryBackoff},
		{name: "Rh in progress: ask again after d", volume: madeByOwn(), known: answers(inProgress(time.Second)), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "Rh in progress keeps Failed", volume: madeByOwn(failedFor("the disk is broken")), known: answers(inProgress(time.Second)), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "Rh R3 W6 in use keeps the phase", volume: madeByOwn(), known: answers(meaning(binding.HookInUse)), rules: hooked(), want: "R3 Wait", events: inUse, says: broken, retry: binding.RetryBackoff},
		{name: "Rh R3 not mine keeps the phase, and is not asked again", volume: madeByOwn(), known: answers(meaning(binding.HookNotMine)), rules: hooked(), want: "R3 Wait", says: broken},
		{name: "Rh R3 W6 in use keeps Failed", volume: madeByOwn(failedFor("the disk is broken")), known: answers(meaning(binding.HookInUse)), rules: hooked(), want: "R3 Wait", events: inUse, says: broken, retry: binding.RetryBackoff},
	})
}

func TestR4Recycling(t *testing.T) {
	recycled := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return orphan(corev1.PersistentVolumeReclaimRecycle, append([]volumeEdit{volumeNote(boundBy, "yes")}, edits...)...)
	}
	pods := obj.PodsKey("default")
	proven := proving(binding.Snapshot{}, dataKey, aKey, pods, detached)
	runs := "R4 RunRecycler pv/a by hostPath"
	user, failed, scrubbed := podUsing("web-0", scheduled), []string{"Warning VolumeFailedRecycle pv/a"}, []string{"Normal VolumeRecycled pv/a"}
	answers := func(err error) binding.Snapshot {
		return answering(proven, reclaimed(binding.RunRecycler, "hostPath", err))
	}
	fails := `R4 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: the disk is broken" status.phase=Failed status.reason=VolumeFailedRecycle`
	again := knownClaim(ofUID("uid-9"))
	runDecisions(t, []decision{
		{name: "R4 a live list of pods before it is scrubbed", volume: recycled(), known: proving(knowing(podOf("other")), dataKey, aKey, detached), rules: hooked(), want: "R4 Read pods/default"},
		{name: "R4 V3 a live read of the claim before it is scrubbed", volume: recycled(), known: proving(binding.Snapshot{}, aKey, pods, detached), rules: hooked(), want: "V3 Read pvc/default/data"},
		{name: "R4 a live read of the volume before it is scrubbed", volume: recycled(), known: proving(binding.Snapshot{}, dataKey, pods, detached), rules: hooked(), want: "R4 Read pv/a"},
		{name: "R4 it is scrubbed", volume: recycled(), known: proven, rules: hooked(), want: runs},
		{name: "R4 whoever made it", volume: recycled(volumeNote(provisionedBy, own)), known: proven, rules: hooked(), want: runs},
		{name: "R4 Failed: once more", volume: recycled(inPhase(corev1.VolumeFailed)), known: proven, rules: hooked(), want: runs},
		{name: "R4 a pod uses it", volume: recycled(), known: proving(knowing(user), dataKey, aKey, pods, detached), rules: hooked(), want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"Volume is used by pods: default/web-0"}, retry: binding.RetryBackoff},
		{name: "R4 a pod that came since it was scrubbed: not free yet", volume: recycled(), known: answering(proving(knowing(user), dataKey, aKey, pods, detached), reclaimed(binding.RunRecycler, "hostPath", nil)), rules: hooked(),
			want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: binding.RetryBackoff},
		{name: "R4 a pod that has finished", volume: recycled(), known: proving(knowing(podUsing("done", podPhase(corev1.PodFailed))), dataKey, aKey, pods, detached), rules: hooked(), want: runs},
		{name: "R4 a claim of the name is there again: its pods are its own", volume: recycled(), known: proving(knowing(user, again), dataKey, aKey, detached), rules: hooked(), want: runs},
		{name: "R4 R1 migrated: not ours", volume: recycled(volumeNote(migratedTo, "csi.example.com")), known: proven, rules: hooked(), want: "R3 Wait"},

		{name: "R4 V4 scrubbed: free", volume: recycled(), known: answers(nil), rules: hooked(), want: "R4 UpdateVolume pv/a: -spec.claimRef -annotation " + boundBy, events: scrubbed},
		{name: "R4 V4 scrubbed: a person's reservation stays", volume: orphan(corev1.PersistentVolumeReclaimRecycle), known: answers(nil), rules: hooked(), want: "R4 UpdateVolume pv/a: spec.claimRef={default/data}", events: scrubbed},
		{name: "R4 the answer to another volume of the name does not count", volume: recycled(func(v *corev1.PersistentVolume) { v.UID = "uid-9" }), known: answers(nil), rules: hooked(), want: runs},
		{name: "R4 it failed", volume: recycled(), known: answers(errBroken), rules: hooked(), want: fails, events: failed, says: []string{"the disk is broken"}},
		{name: "R4 W6 it failed again", volume: recycled(failedFor("the disk is broken")), known: answers(errBroken), rules: hooked(), want: "R4 Wait", retry: binding.RetryBackoff},
		{name: "Rh R4 refused for good", volume: recycled(failedFor("the disk is broken")), known: answers(meaning(binding.HookRefused)), rules: hooked(), want: "R4 Wait"},
		{name: "Rh in progress", volume: recycled(), known: answers(inProgress(time.Second)), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "Rh R4 in use keeps the phase", volume: recycled(), known: answers(meaning(binding.HookInUse)), rules: hooked(), want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"the disk is broken"}, retry: binding.RetryBackoff},
		{name: "R4 no recycler for its source", volume: recycled(func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}}
		}), known: proven, rules: hooked(),
			want: `R4 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: no recycler for nfs volumes is registered" status.phase=Failed status.reason=VolumeFailedRecycle`, events: failed},
	})
}

func TestR6FinalizersOfWhatOwnMade(t *testing.T) {
	used := knowing(knownClaim(boundTo("a")))
	holds := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append([]volumeEdit{held, onHostPath, inPhase(corev1.VolumeBound), volumeNote(provisionedBy, own)}, edits...)...)
	}
	remove, retain, recycle := withPolicy(corev1.PersistentVolumeReclaimDelete), withPolicy(corev1.PersistentVolumeReclaimRetain), withPolicy(corev1.PersistentVolumeReclaimRecycle)
	gets, loses, bound := "R6 UpdateVolume pv/a: +finalizer "+inTreeFinalizer, "R6 UpdateVolume pv/a: -finalizer "+inTreeFinalizer, "V2 Nothing"
	bySource := func(v *corev1.PersistentVolume) { delete(v.Annotations, provisionedBy) }
	runDecisions(t, []decision{
		{name: "R6 Delete has it", volume: holds(remove), known: used, rules: hooked(), want: gets},
		{name: "R6 Delete keeps it", volume: holds(remove, volumeFinalizers(inTreeFinalizer)), known: used, rules: hooked(), want: bound},
		{name: "R6 Retain has it not", volume: holds(retain, volumeFinalizers("theirs", inTreeFinalizer)), known: used, rules: hooked(), want: loses},
		{name: "R6 Recycle has it not", volume: holds(recycle, volumeFinalizers(inTreeFinalizer)), known: used, rules: hooked(), want: loses},
		{name: "R6 an unknown policy: hands off", volume: holds(withPolicy("Burn"), volumeFinalizers(inTreeFinalizer)), known: used, rules: hooked(), want: bound},
		{name: "R6 the external one is not ours to take", volume: holds(remove, volumeFinalizers(externalFinalizer, inTreeFinalizer)), known: used, rules: hooked(), want: bound},
		{name: "R6 not registered: hands off", volume: holds(remove), known: used, want: bound},
		{name: "R6 only a provisioner registered, which cannot delete: hands off", volume: holds(remove), known: used, rules: hooked(withoutDeleters), want: bound},
		{name: "R6 nobody made it: hands off", volume: holds(remove, bySource), known: used, rules: hooked(), want: bound},
		{name: "R6 being deleted: nothing is added", volume: holds(remove, beingDeleted), known: used, rules: hooked(), want: bound},
		{name: "R6 before it is reclaimed", volume: madeByOwn(volumeFinalizers()), known: proving(binding.Snapshot{}, dataKey, aKey, detached), rules: hooked(), want: gets},
	})
}

// TestR3WhatADeleterIsGiven is the volume as it is stored, which the preconditions of the deletion are made of.
func TestR3WhatADeleterIsGiven(t *testing.T) {
	volume := madeByOwn()
	known := proving(knowing(volume), dataKey, aKey, detached)
	action, err := binding.NextForVolume(volume, known, hooked())
	require.NoError(t, err)
	assert.Equal(t, volume, action.Volume)
	assert.Equal(t, types.UID("uid-of-volume"), action.Volume.UID, "R3")
	assert.Equal(t, "8", action.Volume.ResourceVersion, "R3")
}
