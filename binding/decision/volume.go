package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// NextForVolume returns the next write for a volume, or what to read, which claim to decide on first, or what it waits for (V,
// R, G and F rules). It works as NextForClaim does.
func NextForVolume(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	action, err := DraftForVolume(volume, view, options)
	return action.Complete(), err
}

// DraftForVolume is to NextForVolume what DraftForClaim is to NextForClaim.
func DraftForVolume(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	options = options.WithDefaults()
	if action, decided := nextDestroyed(volume, view, options); decided { // before a write that drops the announcement
		return action, nil
	}
	if action, changes := updateVolumeMetadata(volume, options); changes {
		return action, nil
	}
	action, err := nextByClaim(volume, view, options)
	if action.Kind != Nothing && action.Kind != Wait { // the phase may still have to become Bound
		return action, err
	}
	release, changes := unprotectVolume(volume, options)
	announcement, announced := reclaim.AnnouncementOf(volume)
	switch stays := volume.DeletionTimestamp != nil && StaysMeanwhile(volume); {
	case storageDeleted(volume, view):
	case announced && (changes || stays):
		return tellAnnounced(volume, announcement, action), err
	case changes:
		release.Events = action.Events
	}
	if changes {
		return release, nil
	}
	return action, err
}

// tellAnnounced returns a Wait of a volume that is being deleted and stays, for one that is made under its name would not have the
// announcement that stands: that one is told, if nothing else is.
func tellAnnounced(volume *corev1.PersistentVolume, announcement reclaim.Announcement, waiting Action) Action {
	if waiting.Rule != "Rh" && waiting.Rule != "R8" {
		waiting.Kind = Wait
		waiting.Events = append(waiting.Events, warning(volume, reclaimHookOf(announcedKind(announcement)).failed, outlivedText(volume, announcement)))
	}
	return waiting
}

// unprotectVolume takes off a volume that is being deleted what protects it while it is bound, or a hook is at work on it (F3).
func unprotectVolume(volume *corev1.PersistentVolume, options Options) (action Action, changes bool) {
	kept := slices.Clone(volume.Finalizers)
	if options.Protection != ProtectionOff && reclaim.VolumeReleasable(volume, reclaim.VolumeProtection) {
		kept = without(kept, reclaim.VolumeProtection)
	}
	if reclaim.VolumeReleasable(volume, reclaim.AnnouncementFinalizer) {
		kept = without(kept, reclaim.AnnouncementFinalizer)
	}
	// A crash before this write leaves a volume that is being deleted and protected, as it was.
	action = update(volume, func(metadata *metav1.ObjectMeta) { metadata.Finalizers = kept }, "F3", "it is being deleted and not bound")
	return action, len(kept) < len(volume.Finalizers)
}

// nextByClaim decides by the claim that the volume's claimRef names.
func nextByClaim(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	if ref := volume.Spec.ClaimRef; ref != nil && !mayName(ref.Namespace, ref.Name) {
		return nextUnnamed(volume, view), nil
	}
	key := obj.ReferencedClaim(volume)
	claim, source := view.Claim(key.Namespace, key.Name) // none without a claimRef
	switch state := phase.VolumeBindingStateOf(volume, claim); state {
	case phase.VolumeFree:
		return nextFree(volume, view, options)
	case phase.VolumeBinding:
		if action, blocked := awaitDestruction(volume, nil, view, options); blocked {
			return action, nil
		}
		return awaitBinding(volume, claim, view), nil
	case phase.VolumeInUse:
		if bound := phase.OfVolume(volume, state); volume.Status.Phase != bound {
			return onceClaimLive(setPhase(volume, bound, "V2", "its claim names it"), volume, source, key, options), nil
		}
		if action, blocked := awaitDestruction(volume, nil, view, options); blocked {
			return action, nil
		}
		return nothing("V2", "bound"), nil
	case phase.VolumeMisbound, phase.VolumeUnneeded:
		action := nextUnneeded(volume, claim, state, view, options).onceLive(source, key, "V2", "before the volume is taken from it")
		return onceVolumeLive(action, view), nil
	}
	// The claim is gone (V3); the one that has its name now, if any, is another. Where there is nothing to write, there is no read.
	action := releaseAndReclaim(volume, claim, view, options, "its claim is gone")
	switch {
	case MayBeLate(volume, options):
		action = retainLate(volume, view.Former(volume.Name), action)
	case action.Writes() && reservedInVain(volume): // and it is not kept for a claim that has the UID
		action = RetainUnfinished(volume)
	}
	if outdated(key, claim, volume.Spec.ClaimRef.ResourceVersion, view) && (action.Writes() || action.RunsHook()) {
		if !source.IsLive() { // before an announcement too, which would be written again and again
			return ReadLive(key, "V3", "the claim is older than the volume's claimRef"), nil
		}
		return awaitLaterClaim(volume, claim, view), nil
	}
	action = action.onceLive(source, key, "V3", "before the volume is released")
	for _, former := range view.FormerClaims(volume.Name) {
		if former.UID == volume.Spec.ClaimRef.UID { // its claim may be back, whose name is not in it
			_, source = view.Claim(former.Namespace, former.Name)
			action = action.onceLive(source, obj.ClaimKey(former.Namespace, former.Name), "V3", "before the volume is released, whose claim had that name")
		}
	}
	return onceVolumeLive(action, view), nil
}

// reservedInVain reports whether a person has reserved a volume that is to be reclaimed, and it was not Bound since: what is on it is of before, and is not
// to go with a claim that never had it (B1).
func reservedInVain(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeAvailable && !phase.BoundByController(volume) && volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
}

// mayName reports whether there can be a claim of that name.
func mayName(namespace, name string) bool {
	return namespace != "" && name != "" && !obj.ClaimKey(namespace, name).IsNobodys() && len(path.IsValidPathSegmentName(namespace)) == 0 && len(path.IsValidPathSegmentName(name)) == 0
}

// nextUnnamed leaves a volume as it is whose claimRef names no claim that there can be (V1). That is what server-side apply makes of a claimRef
// whose namespace and name go from a manifest: the UID is of another field manager, and stays. The claim that has it gets the claimRef
// written again (C11); without it a person has to say what is to become of the data.
func nextUnnamed(volume *corev1.PersistentVolume, view View) Action {
	ref := volume.Spec.ClaimRef
	for _, key := range claimants(volume, view) {
		claim, _ := view.Claim(key.Namespace, key.Name)
		if claim == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefNone {
			continue
		}
		if match.OwnedByAnother(key, view.Owners(volume.Name)) { // neither it nor the other one may write it (C11)
			continue
		}
		if phase.ClaimBindingStateOf(claim, volume) == phase.ClaimBound || ownsThoughLost(claim, volume, view) || takesNamed(claim, volume, view) {
			return requeue(key, "V1", "it has the UID in claimRef, which lost its namespace and name")
		}
	}
	message := fmt.Sprintf("claimRef of volume %q has namespace %q, name %q and UID %q, and no claim can have that name: write namespace and name of the claim whose data is on the volume, or remove claimRef, which gives the volume to any claim",
		volume.Name, obj.Name(ref.Namespace), obj.Name(ref.Name), ref.UID)
	return wait("V1", message, warning(volume, EventVolumeMismatch, message))
}

// claimants returns the claims whose data a volume may have, whatever name is in its claimRef: those that are Bound to it, and the one that has the UID in it.
func claimants(volume *corev1.PersistentVolume, view View) []obj.Key {
	owners, claimant := view.Owners(volume.Name), view.Claimant(volume)
	if claimant == (obj.Key{}) || slices.Contains(owners, claimant) {
		return owners
	}
	return append(slices.Clone(owners), claimant)
}

// takesNamed reports whether a claim that names a volume and was not bound to it is bound to it next (C7): not one that is being deleted, which
// begins nothing (C12), and not one that the volume does not fit, which is told that on the claim alone.
func takesNamed(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) bool {
	mismatches, err := match.CheckNamed(claim, volume, view.Parsed(claim))
	return claim.Spec.VolumeName == volume.Name && claim.DeletionTimestamp == nil && err == nil && len(mismatches) == 0
}

// outdated reports whether the claim of that key which is shown, or that there is none, is what was there before another claim
// of the name, which had that resourceVersion. It proves nothing of the later one, but that whoever shows it is behind (V3).
func outdated(key obj.Key, claim *corev1.PersistentVolumeClaim, version string, view View) bool {
	if claim != nil {
		return obj.OlderThan(claim, version)
	}
	return obj.IsBefore(view.AbsentAsOf(key), version)
}

// awaitLaterClaim leaves the volume as it is until the claim of that name is read in a later version.
func awaitLaterClaim(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View) Action {
	ref := volume.Spec.ClaimRef
	shown := fmt.Sprintf("there is none as of the older resourceVersion %s", view.AbsentAsOf(obj.ReferencedClaim(volume)))
	if claim != nil {
		shown = fmt.Sprintf("the claim that was read has UID %s and the older resourceVersion %s", claim.UID, claim.ResourceVersion)
	}
	message := fmt.Sprintf("volume %q is bound to claim %s/%s with UID %s at resourceVersion %s, but %s; "+
		"what answers may be out of date, or claimRef may be of another cluster; the volume is left as it is until a later version is read",
		volume.Name, ref.Namespace, ref.Name, ref.UID, ref.ResourceVersion, shown)
	return wait("V3", message, warning(volume, EventVolumeMismatch, message)).withBackoff()
}

// nextFree decides on a volume that no claim has (V1). If a claim waits for it, that claim is decided on before the volume is
// made Available (W1). A malformed volume, which fits no claim, is an error (X7).
func nextFree(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	switch owners := view.Owners(volume.Name); {
	case volume.Spec.ClaimRef != nil:
	case len(owners) == 1: // which waits for what is announced (R8)
		return requeue(owners[0], "V1", "it was bound to it and lost its claimRef"), nil
	case len(owners) > 1:
		return volumeContended(volume, owners, view), nil
	}
	if action, blocked := awaitAnnounced(volume, obj.VolumeKey(volume.Name), view, options); blocked {
		return action, nil
	}
	if claim := view.Waiting(volume); claim != nil { // which is told where R8 keeps it
		return requeue(obj.KeyOf(claim), "W1", "it waits for such a volume"), nil
	}
	if action, blocked := awaitDestruction(volume, nil, view, options); blocked {
		return action, nil
	}
	if available := phase.OfVolume(volume, phase.VolumeFree); volume.Status.Phase != available {
		if first, needed := loseOwner(volume, view); needed {
			return first, nil
		}
		if first, needed := checkOwners(volume, view, options); needed {
			return first, nil
		}
		if volume.Spec.ClaimRef != nil && phase.BoundByController(volume) {
			// Of an earlier binding. A crash after this write leaves a volume without its phase; in the other order it leaves one that V4 gives to anybody.
			return withClaimRef(volume, volume.Spec.ClaimRef, "V1", "a person has reserved it for "+volume.Spec.ClaimRef.Namespace+"/"+volume.Spec.ClaimRef.Name), nil
		}
		return setPhase(volume, available, "V1", "nobody has it"), nil
	}
	if volume.DeletionTimestamp != nil && slices.Contains(volume.Finalizers, reclaim.InTreeFinalizer) {
		message := fmt.Sprintf("volume %q is being deleted and no claim had it, so that its storage is not deleted; set its reclaim policy to Retain, which leaves the storage and lets the volume go", volume.Name)
		return wait("R3", message, warning(volume, EventVolumeFailedDelete, message)), nil
	}
	return nothing("V1", "available"), match.CheckWellFormed(volume)
}

// loseOwner leads to a claim that is known to be Bound to a volume whose claimRef, without a UID, does not give it to that any more. The claim becomes
// Lost (C10), and says so, before the volume is Available. A crash in between leaves one that is listed for owners again; in the other order it
// leaves one that is anybody's once a person removes its claimRef. Where the claim stays Bound (C9, C12), the volume stays as it is, and tells it.
func loseOwner(volume *corev1.PersistentVolume, view View) (first Action, needed bool) {
	for _, key := range view.Owners(volume.Name) {
		claim, _ := view.Claim(key.Namespace, key.Name)
		if claim == nil || phase.Owned(claim) != volume.Name { // it is Lost, or merely being bound to it
			continue
		}
		message := fmt.Sprintf("volume %q is reserved for %s, and claim %s/%s with UID %s is Bound to it all the same; it becomes Available once that one is Lost, or gone",
			volume.Name, holderText(volume), claim.Namespace, claim.Name, claim.UID)
		first = requeue(key, "V1", "it is Bound to the volume, whose claimRef gives that to another, or to its name alone")
		first.Events = []Event{warning(volume, EventVolumeMismatch, message)}
		return first, true
	}
	return Action{}, false
}

// checkOwners returns what comes before a free volume that may have an owner is given to anybody, or made Available. A cache
// of claims that is behind may not show whose data is on the volume (M2): all claims are listed, and each owner among them that is
// not known by then is read, which makes it known. Nobody becomes an owner after that without a write to the volume, on whose
// version the decision is. And while the claim exists that the volume was made for, it is no other's: that claim's finalizer, which
// its tenant may write, has what was made for it deleted (P2).
func checkOwners(volume *corev1.PersistentVolume, view View, options Options) (first Action, needed bool) {
	if !mayHaveOwner(volume, view, options) {
		return Action{}, false
	}
	owners, listed := view.ListedOwners(volume.Name)
	if !listed.IsLive() {
		return ReadLive(obj.ClaimsKey(), "V1", "a claim may be bound to the volume, which has no claimRef to it"), true
	}
	reserved := Action{}
	for _, owner := range owners {
		key := obj.KeyOf(owner)
		claim, source := view.Claim(owner.Namespace, owner.Name)
		switch {
		case !source.IsLive():
			return ReadLive(key, "V1", "volume "+volume.Name+", which has no claimRef to it, may have its data"), true
		case outdated(key, claim, owner.ResourceVersion, view):
			message := fmt.Sprintf("claim %s/%s is bound to volume %q in a list, and was read in an older version; what answers may be out of date, and the volume is left as it is", owner.Namespace, owner.Name, volume.Name)
			return wait("V1", message, warning(volume, EventVolumeMismatch, message)).withBackoff(), true
		case volume.Spec.ClaimRef == nil && madeFor(volume, claim):
			message := fmt.Sprintf("volume %q was made for claim %s/%s, which exists and names volume %q, and is no other's until that claim is gone: then remove its claimRef", volume.Name, claim.Namespace, claim.Name, obj.NamedVolume(claim).Name)
			reserved = reserveFor(key, volume, "V1", message)
			reserved.Events = []Event{warning(volume, EventVolumeMismatch, message)}
		}
	}
	return reserved, reserved.Kind != Nothing // where one of the others is Bound to it, its read has made that known by now
}

// madeFor reports whether a volume was provisioned for a claim that has not got it.
func madeFor(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && volume.Name == ProvisionedName(claim.UID) && claim.Spec.VolumeName != volume.Name
}

// mayHaveOwner reports whether a claim may be bound to a free volume, whatever the caches show: somebody edited or removed the
// claimRef of one that was bound, or made the volume in place of another that a claim was bound to. One that is Available was
// looked at before, unless it shows that somebody removed its claimRef and kube-controller-manager, which does not look, made it so,
// or that a provisioner of ours has made it for some claim.
// Of one that was scrubbed just now nobody is left.
func mayHaveOwner(volume *corev1.PersistentVolume, view View, options Options) bool {
	switch volume.Status.Phase {
	case corev1.VolumeBound:
		return true
	case corev1.VolumeReleased, corev1.VolumeFailed:
		scrubbed := view.Answered(RunRecycler, volume.UID)
		return len(scrubbed) == 0 || scrubbed[len(scrubbed)-1].Err != nil
	case corev1.VolumeAvailable:
		return phase.BoundByController(volume) || options.Hooks.Provisioners.Has(volume.Annotations[phase.ProvisionedByAnnotation])
	}
	return view.Former(volume.Name) != nil
}

// volumeContended leaves a volume without claimRef that several claims own (V1). No claim gets it until a person says which.
func volumeContended(volume *corev1.PersistentVolume, owners []obj.Key, view View) Action {
	named := make([]string, len(owners))
	for i, owner := range owners {
		named[i] = owner.Namespace + "/" + owner.Name
		if claim, _ := view.Claim(owner.Namespace, owner.Name); claim != nil {
			named[i] += " with UID " + string(claim.UID)
		}
	}
	message := fmt.Sprintf("volume %q has no claimRef, and several claims are bound to it; set its claimRef to the one whose data it is, with namespace, name and UID: %s",
		volume.Name, strings.Join(named, ", "))
	return wait("V1", message, warning(volume, EventFailedBinding, message))
}

// onceClaimLive returns a write of phase Bound if the volume is not Released or Failed, nor may have come late, or its claim was read live. Else it returns
// the read that comes before: whoever wrote that phase has seen that the claim is gone, and who has a late cache would undo it without end, or take the
// volume of a claim that was Bound to it for one that never was (V4).
func onceClaimLive(action Action, volume *corev1.PersistentVolume, source Source, claim obj.Key, options Options) Action {
	if MayBeLate(volume, options) {
		return action.onceLive(source, claim, action.Rule, "before the volume that was provisioned for it is Bound")
	}
	if at := volume.Status.Phase; at == corev1.VolumeReleased || at == corev1.VolumeFailed {
		return action.onceLive(source, claim, action.Rule, "before a "+string(at)+" volume is Bound again")
	}
	return action
}

// MayBeLate reports whether a volume that was provisioned for a claim (P2) may have been stored when that was gone: it has had no phase but Pending, and Bound is
// written after a live read of the claim alone. Its create, of a controller that was paused, or through a server that is slow, may have taken effect after the claim
// had the storage by an earlier volume of that name, and both were gone, Retain perhaps being the last that a person said of it.
func MayBeLate(volume *corev1.PersistentVolume, options Options) bool {
	ref := volume.Spec.ClaimRef
	return isNew(volume) && ref != nil && ref.UID != "" && volume.Name == ProvisionedName(ref.UID) && options.Hooks.Deleters.Has(volume.Annotations[phase.ProvisionedByAnnotation])
}

// retainLate returns the write that retains a volume which came late, after a former one; or the one that releases it, which tells it where it is retained.
func retainLate(volume, former *corev1.PersistentVolume, release Action) Action {
	ref, retain := volume.Spec.ClaimRef, corev1.PersistentVolumeReclaimRetain
	message := fmt.Sprintf("volume %q was stored for claim %s/%s with UID %s, and not seen before that was gone; its storage may be deleted already, or have the data of an earlier volume of that name, "+
		"so that it is retained until somebody has looked at its storage", volume.Name, ref.Namespace, ref.Name, ref.UID)
	switch {
	case volume.Spec.PersistentVolumeReclaimPolicy == retain:
		release.Events = append(slices.Clip(release.Events), warning(volume, EventVolumeMismatch, message))
	case former != nil:
		return update(reclaim.SetRetain(volume).Volume, nil, "P2", message)
	}
	return release
}

// awaitBinding leads a volume back to the claim that it is about to be bound to (V2). One that does not fit is not bound to it, and the claim's own
// sync tells so (M12): to lead back to that all the same would repeat a provisioner that fails without its delay, for each try changes the claim (W6).
func awaitBinding(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View) Action {
	if actual, requested := match.VolumeModeOf(volume.Spec.VolumeMode), match.VolumeModeOf(claim.Spec.VolumeMode); actual != requested {
		message := fmt.Sprintf("volume %q has volume mode %s, its claim %s/%s requests %s", volume.Name, actual, claim.Namespace, claim.Name, requested)
		return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
	}
	if volume.DeletionTimestamp != nil && (phase.BindCompleted(claim) || claim.DeletionTimestamp != nil) { // which provisions nothing anew (C10, C12)
		message := fmt.Sprintf("volume %q is being deleted, and is kept until its claim %s/%s is, which names no volume", volume.Name, claim.Namespace, claim.Name)
		return wait("V2", message, warning(volume, EventVolumeFailedDelete, message))
	}
	if volume.DeletionTimestamp != nil || claim.DeletionTimestamp != nil {
		return wait("V2", "it or its claim is being deleted: the binding is not finished")
	}
	if phase.BindCompleted(claim) { // by whoever may edit it
		message := fmt.Sprintf("volume %q is to be bound to claim %s/%s, which is Lost, for it has the annotation %s and names no volume", volume.Name, claim.Namespace, claim.Name, phase.BindCompletedAnnotation)
		return wait("V2", message, warning(volume, EventVolumeMismatch, message))
	}
	if mismatches, err := match.Check(claim, volume, match.Terms{Parsed: view.Parsed(claim)}); err != nil || len(mismatches) > 0 {
		return wait("V2", "it is bound to its claim but does not fit it")
	}
	return requeue(obj.KeyOf(claim), "V2", "the binding is to be finished")
}

// nextUnneeded decides on a volume whose claim names another one (V2). If that one is bound to the claim, this one becomes free,
// or Released and reclaimed. If not, this may be all that is left of the claim's data, and nothing is done. Both need live
// reads, of the claim and of the other volume: before each write, and before the storage is deleted.
func nextUnneeded(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, state phase.VolumeBindingState, view View, options Options) Action {
	other, source := view.Volume(claim.Spec.VolumeName)
	if other == nil || phase.ClaimRefStateOf(other, claim) != phase.ClaimRefBound {
		switch {
		case storageDeleted(volume, view):
			return releaseAndReclaim(volume, claim, view, options, "its storage is deleted")
		case !source.IsLive():
			return ReadLive(obj.VolumeKey(claim.Spec.VolumeName), "V2", "the claim names it, and does not have it here")
		}
		return awaitOther(volume, claim, other)
	}
	why := "its claim has another volume, " + other.Name
	// A crash after this write leaves a volume without its phase; V1 gives it that.
	action := unbind(volume, "V4", why)
	switch {
	case state == phase.VolumeUnneeded:
		action = releaseAndReclaim(volume, claim, view, options, why)
	case isReservedFor(claim, volume):
		action = reserveFor(obj.KeyOf(claim), volume, "V4", why)
	case volume.Name == ProvisionedName(claim.UID):
		action = reserveFor(obj.KeyOf(claim), volume, "V4", why+"; and what was made for it is no other's while it exists")
	case takenFromAnother(volume, claim, view), volume.Status.Phase == corev1.VolumeBound && (!phase.BoundByController(volume) || volume.Spec.ClaimRef.ResourceVersion == "" || mayHaveServed(volume, claim)): // B1 writes both
		action = ReserveUsed(claim, volume, obj.KeyOf(claim))
	}
	return action.onceLive(source, obj.VolumeKey(other.Name), "V2", "before the volume is taken from the claim")
}

// ReserveUsed returns the draft of the write that reserves a volume for a claim of that name, because the one in its claimRef has another volume, and this one may
// have data (V4). Where a person has written that claimRef, and left bound-by-controller of an earlier binding, the name is that of the claim in it. Where a claim had
// the volume when the server went back, it is the name of that claim (W8).
func ReserveUsed(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, name obj.Key) Action {
	message := fmt.Sprintf("volume %q was given by its claimRef to claim %s/%s with UID %s, which has another volume, %q; what is on it may be of a claim that had it before, "+
		"so that it is reserved for a claim named %s/%s until its claimRef is removed, which gives it to any claim", volume.Name, claim.Namespace, claim.Name, claim.UID, obj.NamedVolume(claim).Name, name.Namespace, name.Name)
	action := reserveFor(name, volume, "V4", message)
	action.Events = []Event{warning(volume, EventVolumeMismatch, message)}
	return action
}

// awaitOther leaves the volume as it is and says why. The next decision follows when the claim changes, or the volume that
// the claim names (W3).
func awaitOther(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, other *corev1.PersistentVolume) Action {
	lacks := "does not exist"
	switch {
	case other != nil && other.Spec.ClaimRef == nil:
		lacks = "is not bound to it"
	case other != nil:
		lacks = "belongs to " + holderText(other)
	}
	message := fmt.Sprintf("volume %q is bound to claim %s/%s, which names volume %q; that one %s, so this one may have the claim's data, and is left as it is until that changes or the claim is gone",
		volume.Name, claim.Namespace, claim.Name, obj.NamedVolume(claim).Name, lacks)
	return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
}

// mayHaveServed reports whether a volume that a claim does not need may have been another claim's, and have its data: a person may have patched
// the claimRef, and left in it what a controller had written, or written that (V4).
func mayHaveServed(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return phase.ProvisionedSince(volume, claim) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// takenFromAnother reports whether a volume was seen to have the UID of another claim in its claimRef before: no controller writes a UID in place of that.
func takenFromAnother(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View) bool {
	return slices.ContainsFunc(view.FormerClaims(volume.Name), func(former *corev1.ObjectReference) bool { return former.UID != claim.UID })
}
