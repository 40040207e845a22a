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
//     all classes before the first Sync: a claim whose class is not known is bound at once.
//  2. Call Sync with every key that Observe and ObserveDeleted return, and with every key in Result.Next.
//  3. If Result.After is not zero, call Sync with the same key again after that time. The error beside it is for the log.
//  4. From time to time, call Recheck with every claim and volume of the caches, and Sync with the keys that it returns. That
//     finds what a server has again, or in an older version, after it was restored from a backup.
//  5. Call ObserveRestore when a list of a kind has a resourceVersion below one that was seen for that kind, and Sync with the
//     keys that it returns: the server went back in time. A Sync that notices it by itself returns ErrServerWentBack.
//  6. Call ObserveDeleted for an object that no watch has shown and that a live read does not find: the Controller may know it
//     from a reply of the Client alone.
//
// Equal keys may be merged in a queue, and the order of keys does not matter.
//
// Drivers for real clusters are modules of their own, so that this one depends on no client: binding/clientgo has a Runner
// that needs a clientset and nothing else, and binding/controllerruntime a Reconciler for a manager. Package bindingtest has
// a driver for tests.
//
// Two Controllers may be at work on one cluster, as while a lease changes hands. Each announces on a volume that it is about
// to delete or recycle the storage, reads once more what that depends on, and calls the hook with a token that grows; the
// other waits meanwhile (R8). Storage that refuses a smaller token than it has seen is never deleted or scrubbed while
// somebody uses it. For storage that cannot refuse, package hooks says what remains. All Controllers need clocks that are
// about right, or the storage refuses them until theirs have caught up. Storage that one makes for a claim while the other
// deletes claim, storage and volume may be left behind.
//
// # Files
//
//   - controller.go: Controller, its Sync, and Result.
//   - client.go: Client, AttachmentLister and Recorder.
//   - perform.go: how an action becomes a call of the Client, and how syncs share lists.
//
// # After a restore from a backup
//
// From when it is noticed that the server went back in time until every claim and volume has been read anew, nothing is
// destroyed. Two things cannot be noticed: that a server has already reached once more the versions that were seen, if nobody
// looked before; and that an object is still as it was at the backup. Neither loses data, for whatever is destroyed is read live
// immediately before. But what a backup does not have, nobody can give back: storage that was deleted since is gone, though its
// volume is there again, and storage that was made since has no volume any more. An event ServerWentBack says so.
//
// The rules that code and tests cite, such as M4 or V3, are those of RULES.md beside this file.
package binding
