// Package index finds the best of any number of volumes for a claim, and the claim to offer a volume to, each in O(log n).
//
// An Index has the volumes. It gives the same answers as match.Find on a list of them, and gives each away once: see
// Index.Reserve. A scheduler that plans for many nodes keeps it unchanged meanwhile with Index.Read, and searches it with
// one Query for each claim.
//
// WaitingClaims has the claims that wait for a volume, so that a new volume is offered to the right claim at once.
//
// Both compare only what can fit. Volumes of one class, volume mode and attributes class are in one bucket. A bucket has a
// B-tree by capacity for each set of access modes: of all volumes, and again of those with each label, and of those for the
// nodes with each topology label.
//
// Where to find what:
//
//   - index.go has the Index with its reservations and owners,
//   - query.go has Find and Query, and summary.go the Summary, both on the buckets of bucket.go,
//   - waiting.go has WaitingClaims,
//   - btree.go has the tree, the numbers that it is sorted by, and the trees per set of access modes and per label.
package index
