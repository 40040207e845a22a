// Package binding runs a volume binder: a small Controller that binds PersistentVolumeClaims to PersistentVolumes on any
// client, and reclaims the volumes whose claims are gone.
//
// # The layers
//
// The Controller is the top of the library. Every layer is a package of its own, or several, and imports only layers below.
// Import the one that has what you need:
//
//	binding/preview, bindingtest        what a change would do; an API server in memory for tests
//	binding                             Controller, Client, Recorder, Result
//	binding/internal/engine             one sync as a state machine: no goroutine, no clock, no I/O
//	binding/scheduling/executor         makes the writes of a plan, and waits until the pod's claims are bound
//	binding/scheduling                  pods and nodes: plan, assume, the next write of a plan
//	binding/decision                    the next write for a claim or a volume, and why
//	binding/hooks                       provisioners, deleters and recyclers of your own
//	reclaim                             what becomes of a released volume; operations on volumes for people
//	binding/index                       what match answers, in O(log n); which waiting claim a volume suits
//	binding/match                       does a volume fit, which is best, why not
//	binding/obj, phase,                 keys and errors; how claim and volume refer to each other;
//	storageclass, accessmode            classes; sets of access modes
//
// # Who does what
//
// A decision is a pure function of package decision: objects in, the next write or the reason to wait out. The engine keeps
// the newest known version of every object and decides with it. The Controller makes the write that was decided on, hands
// the server's reply to the engine, and goes on until there is nothing to do but wait. So a crash between two writes leaves
// a state like any other.
//
// # Driving a Controller
//
// A Controller has no queue, no clock and no watch. Its driver has these duties:
//
//  1. Tell it of every claim, volume and class with Observe and ObserveDeleted. Tell it of pods, if claims are to be protected
//     while in use or are to name the pods that they wait for, and of VolumeAttachments, if storage is reclaimed. Tell it of
//     all classes and claims before the first Sync: a claim whose class is not known is bound at once, and a volume that has
//     lost its claimRef goes to another claim if its owner is not known (M2).
//  2. Call Sync with every key that Observe and ObserveDeleted return, and with every key in Result.Next.
//  3. If Result.After is not zero, call Sync with the same key again after that time. The error beside it is for the log.
//  4. From time to time, call Recheck with every claim and volume of the caches, and RecheckKnown with what tells whether a cache
//     has an object that the Controller knows, of any kind, once the caches of all kinds are filled; and Sync with the keys that
//     these return. That finds what a server has again, or in an older version, after it was restored from a backup, and what is
//     gone, though no watch will tell of it.
//  5. Call ObserveRestore when a list of a kind has a resourceVersion below one that was seen for that kind, and Sync with the
//     keys that it returns: the server went back in time. A Sync that notices it by itself returns ErrServerWentBack. Where a list
//     may show what was told already, call ObserveRestoreAgain instead.
//  6. Set Workers, if it calls Sync from several goroutines, to one less than these: a tenant whose objects are slow to sync
//     could occupy all (W9).
//
// Equal keys may be merged in a queue, and the order of keys does not matter.
//
// Drivers for real clusters are modules of their own, so that this one depends on no client: binding/clientgo has a Runner
// that needs a clientset and nothing else, and binding/controllerruntime a Reconciler for a manager. Package bindingtest has
// a driver for tests.
//
// # More than one at work
//
// Two Controllers may be at work on one cluster, as while a lease changes hands, or without leader election. Each announces on
// a volume that it is about to delete or recycle the storage, reads once more what that depends on, and calls the hook with a
// token that grows; the other waits meanwhile (R8). Storage that refuses a smaller token than it has seen is never deleted or
// scrubbed while somebody uses it. For storage that cannot refuse, package hooks says what remains. All Controllers need clocks
// that are about right, or the storage refuses them, and nothing is provisioned where one that was an hour ahead has announced,
// until theirs have caught up. Storage that one makes for a claim while the other deletes claim, storage and volume may be left
// behind.
//
// A release before R8 neither announces nor heeds an announcement. While one is at work beside this one, as during a rollout:
//
//   - Binding is as safe as ever, and so is all that is written: each write carries the version that it was decided on.
//   - Deleters destroy nothing that is used, as long as the name of a volume or of its storage is not used again. A registered
//     provisioner does so: while the one deletes what it has made and could not store, the other may find it, store it and have
//     it bound.
//   - Recyclers may: the one scrubs, frees the volume and has it bound to the next claim, while the other is still inside of its
//     own call, and scrubs that claim's data. However short the pause, it need only span the other's work. Storage that refuses
//     older tokens, and calls that bring none once it has seen one, is safe from a late call of the former release. It is not
//     safe from a late call of this one, for the former has shown no token that would be larger.
//
// So a program with recyclers or provisioners ends the former release before it starts this one, as a Deployment with strategy
// Recreate does. With leader election on both sides a rolling update does as well, but for a process that is paused for longer
// than its lease lasts. Without either nothing needs to be done. An announcement of this release that a former one leaves on a
// volume which it frees holds nobody up for longer than any other.
//
// # To and from kube-controller-manager
//
// Its persistentvolume-binder-controller must not be at work beside a Controller: it announces nothing and trusts its cache. To
// change from the one to the other, end the one and start the other. What the one has left half done the other brings to
// an end: a claimRef without volumeName, a volume without a phase, a Released volume whose storage is or is not deleted, a claim
// or a volume that is being deleted. The annotations and finalizers of Kubernetes mean the same to both. Four things to know:
//
//   - Claims that a registered provisioner was called for, with a registered deleter of its name, carry the finalizer
//     pvbind.github.io/provisioning until they are bound, and kube-controller-manager does not remove it: such a claim stays, once
//     it is deleted. Before going back, wait until none has it, or start this program again until none has. Where that is not
//     possible, remove it by hand: storage that was made for the claim may then be left behind.
//   - Storage that one of the two was making may be left behind, when the other makes it anew.
//   - An announcement (pvbind.github.io/reclaiming) means nothing to kube-controller-manager. A Controller that comes back
//     waits for what its predecessor has announced, Hooks.Timeout and half a minute, from when it sees it. A volume that
//     kube-controller-manager has scrubbed and freed meanwhile keeps the announcement, and is given to nobody until somebody
//     removes that: an event on the volume says so. A volume whose announcement stands also keeps the finalizer of the same name,
//     and stays, once it is deleted, until a Controller is back or somebody has removed that by hand.
//   - Where kube-controller-manager recycles, it does so by pods named recycler-for-<volume>, which go on when it has ended, and
//     which nothing here knows of. Before starting recyclers of your own, wait until each such pod has Succeeded or Failed, or delete
//     it, also one that is Pending. Likewise, a hook that has answered hooks.InProgress must have ended its work before
//     kube-controller-manager is started.
//
// # Files
//
//   - controller.go: Controller, its Sync, and Result.
//   - client.go: Client, AttachmentLister, Follower and Recorder.
//   - calls.go: how what is learned after a decision ends its write, its deleter or its recycler.
//   - perform.go: how an action becomes a call of the Client, and how syncs share lists.
//
// # After a restore from a backup
//
// From when it is noticed that the server went back in time until every claim and volume has been read anew, nothing is
// destroyed; the contexts of deleters and recyclers that run end. Two things cannot be noticed: that a server has already
// reached once more the versions that were seen, if nobody looked before; and that an object is still as it was at the
// backup. Neither destroys storage, for whatever is destroyed is read live immediately before. But a claim may then be
// given a volume that is another's by now: one that was free at some resourceVersion before the restore, and has the very
// same one and an owner after it. No write is refused for that, and nothing is read before a bind. Do not restart controllers
// for that reason before the restore was noticed, which an event ServerWentBack says: one that is new knows of nothing that was
// bound since the backup. What a backup does not have, nobody can give back: storage that was deleted since is gone, though its
// volume is there again, and storage that was made since has no volume any more.
//
// The rules that code and tests cite, such as M4 or V3, are those of RULES.md beside this file.
package binding
