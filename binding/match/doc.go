// Package match decides which PersistentVolume fits a PersistentVolumeClaim, which of several is best, and why.
//
// Find chooses among many volumes, Check compares one with a claim, and Explain says of each why it was chosen or not. All
// three go through one list of rules, so an explanation cannot contradict a decision. A Request has the claim and the
// volumes. What a match depends on beside them, such as the claim's class and the node, is in its Terms. A volume that does
// not fit has Mismatches: a Reason each, with what the claim requested and what the volume actually has.
//
// Criteria is a claim that was read once, to be compared with any number of volumes without an allocation. Package index
// uses it, and gives the same answers as Find in O(log n).
//
// The rules are those of kube-controller-manager's binder and kube-scheduler's VolumeBinding plugin. RULES.md in package
// binding lists them as M1 to M13, and marks where they differ.
//
// # Files
//
//   - match.go has Find and the order of the volumes that fit,
//   - check.go has Check, the Reasons and Mismatches,
//   - criteria.go has Criteria, which is what is read from a claim, and volume.go what is read from a volume,
//   - rules.go has the rules themselves,
//   - report.go has Explain, and the Summary of a Report in one line.
package match
