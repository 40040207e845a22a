// Package phase says how a volume and a claim stand to each other, and which
// phase each of them should therefore have.
//
// A volume points to its claim by spec.claimRef, a claim to its volume by
// spec.volumeName. The two are written one after the other, by controllers and by
// people, so at any moment only one side may be set, or the two may disagree.
// [LinkOf] reads the volume's side alone. [VolumeStandingOf] and [ClaimStandingOf]
// read both sides, each from the place of one object, and return one word for the
// situation:
//
//	standing := phase.VolumeStandingOf(volume, claim)
//	if standing == phase.Orphaned {
//		// nobody needs it any more: release it, then reclaim it
//	}
//	should := phase.OfVolume(volume, standing)
//
// The standing decides what to do next; the phase only follows from it. Nothing
// here reads a phase to find out how two objects are linked, for a phase may be
// old, while claimRef and volumeName are what everybody acts on.
package phase
