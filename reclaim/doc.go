// Package reclaim decides what becomes of a volume whose claim is gone, when the
// finalizers that hold back a deletion may go, and how a person gets such a volume
// back.
//
// # Reclaiming
//
// A released volume is treated as its reclaim policy says: [Decide] turns the
// volume into one [Action]. [Options] holds what counts beside the volume: which
// provisioners were migrated to CSI drivers, and which deleters and recyclers are
// registered. A volume of somebody else's is left to its provisioner:
//
//	decision := reclaim.Decide(volume, options)
//	switch decision.Action {
//	case reclaim.RunDeleter:
//		// delete the storage by the deleter registered as decision.Hook
//	case reclaim.Fail:
//		// phase Failed, with decision.EventReason and decision.Message
//	}
//
// Decide takes for granted that the volume is to be reclaimed, which package phase
// decides (VolumeOrphaned and VolumeUnneeded). Deleting and recycling destroy data,
// so the caller reads volume and claim live just before; and recycling also waits
// for the pods that [BlockRecycling] returns.
//
// Before storage is destroyed an [Announcement] says so on the volume, and another
// controller that sees it waits. [AnnouncementFinalizer] keeps the volume as long.
//
// Three kinds of finalizers delay a deletion. [Finalizers] keeps those of the
// storage, so that a volume object does not vanish before what it stands for.
// [ClaimReleasable] and [VolumeReleasable] keep claims that pods use and volumes
// that are bound.
//
// # Operations
//
// [MakeAvailable] frees a Released volume for any claim, [Reserve] pre-binds it to
// one, [SetRetain] keeps it whatever becomes of its claim, and [NextTransfer]
// transfers it to a claim in another namespace, one write at a time. They return
// the changed volume and what that puts at risk, or an [Error] with every reason. A
// claim that a cache lacks may exist, so they take only what was read from the
// server itself, as [Known]:
//
//	change, err := reclaim.MakeAvailable(volume, known)
//	var rejected *reclaim.Error
//	if errors.As(err, &rejected) {
//		// read what rejected.Reads() names, or accept a Risk of rejected.Reasons
//	}
//
// # Files
//
//   - decide.go has the reclaim policy,
//   - announcement.go has what is said before data is destroyed,
//   - finalizers.go has all finalizers, and pods.go which pods use a claim,
//   - operations.go has the operations of one write, what they take and the errors that
//     they return,
//   - review.go has the checks that all operations share,
//   - transfer.go has the operation of several writes, and transfer_record.go what it
//     writes down to go on after a crash.
package reclaim
