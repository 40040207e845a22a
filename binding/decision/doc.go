// Package decision decides the next write for a claim or a volume, and says why.
//
// It is the knowledge of kube-controller-manager's persistent-volume controller as pure functions. They take objects and
// return what to do. They do no I/O, read no clock, start nothing, keep nothing and modify nothing that they are given.
//
// # One write at a time
//
// Binding a claim takes four writes to two objects. Any of them may fail, or be the last before a crash. So NextForClaim and
// NextForVolume plan no four writes: they return the next one, as an Action. The caller
//
//  1. does what the Action says: a write, a live read, or the call of a hook;
//  2. puts the server's reply in place of the old object, or adds the hook's Answer to the others;
//  3. publishes the Action's events, unless they are known already;
//  4. calls again, until the Action is Nothing or Wait. Requeue names a claim that is decided on first.
//
// No decision remembers the one before. What a crash leaves is a state like any other, and the next decision continues from
// there.
//
// # What a decision may know
//
// A View is everything else in the cluster that a decision looks up. Each look-up comes with a Source: found in a cache,
// read live, or absent in a live read. What a cache lacks is unknown, not gone. So before a volume is released, storage is
// deleted or a claim is declared Lost, the Action is a Read, and the next decision is made on what the server said.
// Snapshot is a View on plain lists, for tests and tools; a Controller has indexes.
//
// Options holds what an administrator chose: which provisioners are migrated to CSI drivers, whether to protect objects in
// use, and which hooks can be run.
//
// # Why a claim is Pending
//
// ExplainClaim says what a claim waits for, as a ClaimState and in a sentence. It runs NextForClaim itself, so it cannot
// contradict the decision. Where volumes were searched, it adds how many failed for which reason and the near miss.
//
// CheckPair compares a claim and the volume that belongs to it with a healthy pair. It returns every Violation and one
// Repair: the step that the controller makes by itself, the write that a person can make and its risk, or why no write is
// safe.
//
// # Files
//
//   - action.go has what a decision returns: Action and Event.
//   - view.go has what a decision is given: View, Source, Answer and Options, and the Snapshot.
//   - claim.go has NextForClaim: the state of a claim and what follows, until it is bound or Lost.
//   - volume.go has NextForVolume: the state of a volume and what follows, until it is free or bound, and reclaim.go what follows once
//     its claim is gone.
//   - bind.go has the four writes of a bind, and those that undo it.
//   - provision.go has the provisioning of a claim, and how storage that is not needed is deleted again.
//   - announce.go has what is written before storage is destroyed, and who waits for that.
//   - metadata.go has the annotation migrated-to and the finalizers that protect.
//   - explain.go has ExplainClaim.
//   - pair.go has CheckPair and the violations, repair.go what can be done about them.
//
// The rules in parentheses, such as C5 or V3, are those of RULES.md in package binding.
package decision
