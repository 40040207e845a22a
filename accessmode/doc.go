// Package accessmode treats the access modes of claims and volumes as sets.
//
// A claim requests modes and a volume offers them, both as lists in which order
// and repetition mean nothing. [Of] reads such a list into a [Set], a value of
// one byte that is compared, stored and passed about without allocation. A
// volume can serve a claim only if its set contains the claim's:
//
//	offered, err := accessmode.Of(volume.Spec.AccessModes...)
//	requested, err := accessmode.Of(claim.Spec.AccessModes...)
//	if !offered.Contains(requested) {
//		missing := requested &^ offered
//		…
//	}
//
// Among volumes that can serve, the better choice is the one that offers the
// fewest modes beyond the requested ones: the others stay free for claims that
// need them. [Compare] puts it first.
//
// [Set.AllowsPod] decides whether a pod may use a claim beside others.
//
// # Files
//
//   - set.go has all of it.
package accessmode
