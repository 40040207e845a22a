// Package accessmode treats the access modes of claims and volumes as sets.
//
// A claim asks for modes and a volume offers them, both as lists in which order
// and repetition mean nothing. [Of] reads such a list into a [Set], a value of
// one byte that is compared, stored and passed about without allocation. A
// volume can serve a claim only if its set contains the claim's:
//
//	offered, err := accessmode.Of(volume.Spec.AccessModes...)
//	asked, err := accessmode.Of(claim.Spec.AccessModes...)
//	if !offered.Contains(asked) {
//		missing := asked.Minus(offered)
//		…
//	}
//
// Among volumes that can serve, the one that offers the fewest modes beyond what
// was asked is the better choice, for the others stay free for claims that need
// them; [Compare] puts it first.
package accessmode
