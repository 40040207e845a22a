// Package match decides which PersistentVolume fits a PersistentVolumeClaim, which of several is best, and why.
//
// Check compares a claim with one volume and returns every reason why the volume does not fit. Find chooses among many,
// and Explain says of each why it was chosen or not. All three go through one list of rules, so an explanation cannot
// contradict a decision. What a match depends on beside claim and volume, such as the node, is in Terms.
//
// Criteria is a claim that was read once, to be compared with any number of volumes without an allocation. Package
// binding's Index stands on it, and gives the same answers as Find in the time of a look-up.
//
// The rules M1 to M13 are those of RULES.md in package binding. They are those of kube-controller-manager's binder and
// kube-scheduler's VolumeBinding plugin, but for the differences that are marked there.
package match
