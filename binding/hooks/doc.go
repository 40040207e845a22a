// Package hooks is the interface to storage of one's own: who provisions storage, deletes it or removes the data from it.
//
// A Set has the hooks of a Controller: a Provisioner for each provisioner that classes name, Deleters for the volumes that
// were provisioned and for those that nobody is said to have provisioned, and Recyclers. When a hook is called, in which order
// with the writes, and what follows when it fails, is decided by package decision. An Error tells more than that a hook
// failed: that the work goes on, that it will never succeed, or that somebody uses the storage.
//
// # Tokens
//
// Two controllers may be at work at once, one of them paused for any time at any instruction. Before a Deleter or Recycler
// is called, the call is announced on the volume, and everything it depends on is read live after that. Another controller
// that sees the announcement waits for Timeout and Margin before it announces a call of its own. The first one does not
// begin a call later than Margin, or Timeout where that is shorter, after its announcement, but announces it anew (TooLate), and its context
// ends when Timeout is over since then.
//
// So one thing remains: a process that is paused between that check and what the storage does, or a hook that ignores its
// context, until Timeout and Margin after the announcement are over. By then another controller may have deleted or recycled
// the storage, and bound the volume to another claim. How long a pause has to be for that depends on when it begins. A
// call may begin up to Margin after its announcement, or up to Timeout where that is shorter: a pause right then has to be
// longer than the larger of the two. One that begins later may be shorter: after the hook's last look at its context,
// shortly before that ends, one that is longer than Margin is enough. Where a hypervisor stops the machine with both its clocks,
// the check sees no pause: it may begin before that, at any instruction after the announcement.
//
// ReclaimRequest.Token is for that: it is larger in each later call, so that storage which keeps the largest one, with the
// storage and in the same transaction as what it does, can refuse the late call.
// Return an Error with StaleToken for it. ProvisionRequest.Token is counted with it: keep it before the storage is handed out, also
// where that is found and not made. A Provision is larger than each Delete before it for the same claim. So a Delete that was paused
// is refused, also where a restore of the server took its announcement away. Once the storage has seen a token, it should refuse a call without one, as of a release that
// knew of none, too: package binding says what holds beside such a release.
//
// For storage that cannot refuse:
//
//   - A Recycler is dangerous. The volume that it scrubs late may be another claim's by then. Have it check its context
//     before each step, and give it a Timeout that is longer than its work and every pause that can happen together.
//   - A Deleter is not, as long as a name is not used again: what it deletes late is gone already. Volumes that are provisioned
//     here have the UID of their claim in their name. The name comes again where the storage of a claim is made anew, because
//     it did not fit or could not be stored, and where a restore of the server brings the claim back. The former is only once
//     a later Delete of the same storage has succeeded: let that be only when no earlier one goes on.
//
// A restore of the server takes announcements with it. A controller that notices one announces and calls nothing for Timeout and
// Margin. One that starts only after the restore cannot notice it: start it when those before have ended, or that much later.
//
// All controllers of a cluster should have the same Timeout. An announcement says how long its call may take, and who sees it
// waits for that, or for its own Timeout where that is longer.
//
// All of it is in hooks.go. The rules P2, R3, R4 and Rh are those of RULES.md in package binding.
package hooks
