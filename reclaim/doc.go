// Package reclaim says what becomes of a volume whose claim is gone, when the
// finalizers that hold back a deletion may go, and how a person gets such a volume
// back.
//
// A released volume is treated as its reclaim policy says: [Decide] turns the
// volume into one verb. Two things outside the volume count, and [Rules] holds
// them: which provisioners were migrated to CSI drivers, and which deleters and
// recyclers the controller has. What is not ours to reclaim is left to whoever
// made it:
//
//	decision := reclaim.Decide(volume, rules)
//	switch decision.Verb {
//	case reclaim.RunDeleter:
//		// delete the storage by the deleter registered as decision.Hook
//	case reclaim.Fail:
//		// phase Failed, with decision.EventReason and decision.Message
//	}
//
// Decide supposes that the volume is to be reclaimed, which package phase says
// (Orphaned and Surplus). Deleting and recycling destroy data, so the caller reads
// volume and claim live just before; and recycling also waits for the pods that
// [BlockRecycling] returns.
//
// Three kinds of finalizers delay a deletion. [Finalizers] keeps those of the
// storage, so that a volume object does not vanish before what it stands for.
// [ClaimReleasable] and [VolumeReleasable] keep claims that pods use and volumes
// that are bound.
//
// # For people
//
// [Open] frees a Released volume for any claim, [Reserve] sets it aside for one,
// [Retain] keeps it whatever becomes of its claim, and [NextMove] hands it to a claim
// in another namespace, one write at a time. They return the changed volume and what
// that puts at risk, or a [Refusal] with every reason. A claim that a cache lacks
// may exist, so they take only what the server itself said, as [Known]:
//
//	change, err := reclaim.Open(volume, known)
//	var refused *reclaim.Refusal
//	if errors.As(err, &refused) {
//		// read what refused.Reads() names, or accept a Risk of refused.Objections
//	}
package reclaim
