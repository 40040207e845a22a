// Package phase decides how a volume and a claim are bound to each other, and which
// phase the volume should therefore have.
//
// A volume points to its claim by spec.claimRef, a claim to its volume by
// spec.volumeName. The two are written one after the other, by controllers and by
// people. So at any moment only one side may be set, or the two may disagree.
//
// [ClaimRefStateOf] reads the volume's side alone: a claimRef without a UID is
// pre-bound, one with the claim's UID is bound, one with another UID is stale.
// [VolumeBindingStateOf] and [ClaimBindingStateOf] read both sides, each from the
// place of one object, and return one word for the situation:
//
//	state := phase.VolumeBindingStateOf(volume, claim)
//	if state == phase.VolumeOrphaned {
//		// its claim is gone: release it, then reclaim it
//	}
//	should := phase.OfVolume(volume, state)
//
// The state decides what to do next; the phase only follows from it. Nothing here
// reads a phase to find out how two objects are bound, for a phase may be old. The
// one exception is [Owned]: status.phase Bound of a claim is the only proof that a
// volume without claimRef belongs to it.
//
// # Files
//
//   - claimref.go has the claimRef and the annotations,
//   - volume.go and claim.go have the two objects.
package phase
