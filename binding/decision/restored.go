package decision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// GiveBack returns the next read or write by which a claim or volume gets back what it had in a later version, before the server went back
// in time, and nobody else knows of any more (W8): its announcement, or that it had storage since, the claimRef of a volume, or its reclaim policy Retain, which it is also
// given where a later claim had it. What is given back keeps data, and destroys none, for it may be a person who has changed the object since.
func GiveBack(now, former obj.Object, view View) (next Action, lost bool) {
	if lostAnnouncement(now, former) {
		return giveBackAnnouncement(now, former), true
	}
	if lostStorage(now, former) {
		return giveBackStorage(now), true
	}
	volume, ok := now.(*corev1.PersistentVolume)
	before, _ := former.(*corev1.PersistentVolume)
	if !ok || before == nil {
		return Action{}, false
	}
	has := volume
	if lostClaimRef(volume, before) {
		read, owner := findOwner(volume, obj.ReferencedClaim(before), view)
		switch {
		case read.Kind == Read:
			return read, true
		case owner == nil:
			return giveBackClaimRef(volume, before), true
		}
		owned := *volume // as C11 or C7 writes it next
		owned.Spec.ClaimRef = referenceTo(owner)
		has = &owned
	}
	if !lostPolicy(has, before) {
		return Action{}, false
	}
	return giveBackPolicy(volume, policyMessage(has, before)), true
}

// Lost reports whether an object lacks what it had in a later version, as GiveBack gives it back.
func Lost(now, former obj.Object) bool {
	volume, ok := now.(*corev1.PersistentVolume)
	before, was := former.(*corev1.PersistentVolume)
	return lostAnnouncement(now, former) || lostStorage(now, former) || ok && was && (lostClaimRef(volume, before) || lostPolicy(volume, before))
}

// lostAnnouncement reports whether an announcement is missing, or an older one stands in its place: what that one says is no word of the later
// call. A claim that has a volume needs none, nor does one that had what was provisioned for it, or whose storage was deleted, as it was if the claim had a volume
// and no finalizer of P2 any more, or a volume of the same name whose storage may be another.
func lostAnnouncement(now, former obj.Object) bool {
	claim, ok := now.(*corev1.PersistentVolumeClaim)
	if had, _ := former.(*corev1.PersistentVolumeClaim); ok && (hadProvisioned(claim, former) || had != nil && phase.Owned(had) != "" && !provisioning(had)) {
		return false
	}
	standing, stands := reclaim.AnnouncementOf(now)
	announcement, announced := reclaim.AnnouncementOf(former)
	another := now.GetUID() != former.GetUID() // what was made for a claim has its UID in the name
	if ok && another || announcement.Done && (ok || another) {
		return false
	}
	lost := !stands || standing.Token < announcement.Token || standing.Token == announcement.Token && announcement.Done && !standing.Done
	return announced && lost && (!ok || claim.Spec.VolumeName == "")
}

// giveBackAnnouncement announces again what may go on, whoever does it, and however long: so nobody else gets the storage (R8). A
// crash before this write leaves the object as the backup has it, and nobody who remembers.
func giveBackAnnouncement(now, former obj.Object) Action {
	return update(now, func(metadata *metav1.ObjectMeta) { reclaim.AnnounceAgain(metadata, former) }, "W8", "it was announced before the server went back in time")
}

// lostStorage reports whether a claim had what was provisioned for it, and an announcement of before says that it may have been deleted (P2).
func lostStorage(now, former obj.Object) bool {
	claim, ok := now.(*corev1.PersistentVolumeClaim)
	_, announced := reclaim.AnnouncementOf(now)
	return ok && announced && claim.Spec.VolumeName == "" && hadProvisioned(claim, former)
}

// hadProvisioned reports whether a claim was Bound to what was provisioned for it. An announcement that stood on it then was of no account.
func hadProvisioned(claim *corev1.PersistentVolumeClaim, former obj.Object) bool {
	had, ok := former.(*corev1.PersistentVolumeClaim)
	return ok && claim.UID == had.UID && phase.Owned(had) == ProvisionedName(claim.UID)
}

// giveBackStorage withdraws the announcement, as the binding did that is undone by now: what was provisioned after it is not to be deleted. A crash
// before this write leaves the claim as the backup has it, and nobody who remembers.
func giveBackStorage(now obj.Object) Action {
	return update(now, func(metadata *metav1.ObjectMeta) { reclaim.Withdraw(metadata) }, "W8", "it had what was provisioned for it before the server went back in time")
}

// lostClaimRef reports whether a volume is free that a claim had. One that the backup gives to another claim is that one's.
func lostClaimRef(now, former *corev1.PersistentVolume) bool {
	ref := former.Spec.ClaimRef
	return now.Spec.ClaimRef == nil && ref != nil && ref.Namespace != "" && ref.Name != ""
}

// findOwner returns the claim for which a volume without claimRef gets it by C11 or C7, for it owns the volume (M2): the one that had it, or another; nil
// if there is none. What is known of them is from before, so that each is read live; and the restore may have brought one back that nobody knows, so that
// all claims are listed before there is none.
func findOwner(volume *corev1.PersistentVolume, had obj.Key, view View) (read Action, owner *corev1.PersistentVolumeClaim) {
	read, owner = firstOwner(volume, slices.Concat(view.Owners(volume.Name), []obj.Key{had}), view)
	if read.Kind == Read || owner != nil {
		return read, owner
	}
	listed, source := view.ListedOwners(volume.Name)
	if !source.IsLive() {
		return ReadLive(obj.ClaimsKey(), "W8", "a claim may be bound to the volume, which had a claimRef before the server went back in time"), nil
	}
	keys := make([]obj.Key, len(listed))
	for i, claim := range listed {
		keys[i] = obj.KeyOf(claim)
	}
	return firstOwner(volume, keys, view)
}

// firstOwner returns the first of the claims that owns a volume, as live reads show, or the next such read.
func firstOwner(volume *corev1.PersistentVolume, claims []obj.Key, view View) (read Action, owner *corev1.PersistentVolumeClaim) {
	for _, key := range claims {
		claim, source := view.Claim(key.Namespace, key.Name)
		switch {
		case !source.IsLive():
			return ReadLive(key, "W8", "it had the volume before the server went back in time"), nil
		case claim != nil && (phase.Owned(claim) == volume.Name || ownsThoughLost(claim, volume, view)):
			return Action{}, claim
		}
	}
	return Action{}, nil
}

// giveBackClaimRef reserves a volume for a claim of the name whose data may be on it, and retains it if it was retained. So it is not lost with
// that claim, which the backup may not have, or with another volume. A crash before this write leaves the volume as the backup has
// it, and nobody who remembers.
func giveBackClaimRef(now, former *corev1.PersistentVolume) Action {
	key := obj.ReferencedClaim(former)
	message := fmt.Sprintf("volume %q was claim %s/%s's before the API server went back in time, and may have its data: it is kept for a claim of that name; "+
		"to give it to another, remove its claimRef", now.Name, key.Namespace, key.Name)
	action := reserveFor(key, now, "W8", message)
	if lostPolicy(now, former) {
		action.Volume = reclaim.SetRetain(action.Volume).Volume
	}
	action.Events = []Event{warning(now, EventServerWentBack, message)}
	return action
}

// lostPolicy reports whether a volume may be reclaimed with data that was to be kept: it was retained, or another claim than its claimRef
// names has had it since, or was to have it. It may be reclaimed at once, or when a transfer that the backup shows has ended.
func lostPolicy(now, former *corev1.PersistentVolume) bool {
	retainedNow, retainedLater := retained(now.Spec.PersistentVolumeReclaimPolicy), retained(reclaim.PolicyAfterTransfer(now))
	switch {
	case wasLaterClaims(now, former):
		return !retainedNow || !retainedLater
	case retainedNow:
		return !retainedLater && retained(reclaim.PolicyAfterTransfer(former))
	}
	return retained(former.Spec.PersistentVolumeReclaimPolicy)
}

func retained(policy corev1.PersistentVolumeReclaimPolicy) bool {
	return policy == corev1.PersistentVolumeReclaimRetain
}

// wasLaterClaims reports whether a volume that has a claimRef was bound to another claim before the server went back, or, if the claimRef has a
// UID, reserved for one.
func wasLaterClaims(now, former *corev1.PersistentVolume) bool {
	ref, before := now.Spec.ClaimRef, former.Spec.ClaimRef
	switch {
	case ref == nil || before == nil:
		return false
	case ref.UID != "":
		return ref.UID != before.UID
	}
	return before.UID != "" && obj.ReferencedClaim(now) != obj.ReferencedClaim(former)
}

// policyMessage says why a volume is retained.
func policyMessage(now, former *corev1.PersistentVolume) string {
	if !wasLaterClaims(now, former) {
		return fmt.Sprintf("volume %q had reclaim policy Retain before the API server went back in time, and has it again", now.Name)
	}
	key := obj.ReferencedClaim(former)
	return fmt.Sprintf("volume %q was given to claim %s/%s before the API server went back in time, and may have its data: its reclaim policy is Retain now; "+
		"look at what is on it before you set another", now.Name, key.Namespace, key.Name)
}

// GivenSince returns the event on a retained volume whose claimRef named another claim before the server went back in time.
func GivenSince(now, former obj.Object) (event Event, changed bool) {
	volume, ok := now.(*corev1.PersistentVolume)
	before, was := former.(*corev1.PersistentVolume)
	if !ok || !was || !wasLaterClaims(volume, before) {
		return Event{}, false
	}
	return warning(volume, EventServerWentBack, policyMessage(volume, before)), true
}

// giveBackPolicy retains a volume again, or for the first time. A crash before this write leaves one that is reclaimed as the backup has it.
func giveBackPolicy(now *corev1.PersistentVolume, message string) Action {
	action := update(reclaim.SetRetain(now).Volume, nil, "W8", message)
	action.Events = []Event{warning(now, EventServerWentBack, message)}
	return action
}
