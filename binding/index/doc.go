// Package index finds the best of any number of volumes for a claim, and the neediest of any number of claims for a
// volume, each in O(log n).
//
// An Index is of volumes. It gives the same answers as match.Find on a list of them, and gives each away once: see
// Index.Reserve. A scheduler that asks for many nodes holds it still meanwhile: see Index.Read.
//
// Waiting is of the claims that wait for a volume, so that one that comes is offered to the right claim at once (W1).
//
// Both keep what is comparable in B-trees by size: volumes of one class, volume mode and attributes class together, apart
// by access modes, and again by each label and each place that a node affinity names.
package index
