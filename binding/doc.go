// Package binding decides which PersistentVolume a PersistentVolumeClaim gets, and what becomes of the
// volume afterwards. It is the knowledge of kube-controller-manager's volume binder as a library: pure
// functions that say what to do and why, and a small Controller that does it on any client.
//
// # Matching
//
// Which volume fits a claim, and why, is package match's to say. Package index gives the same answers for any number of
// volumes in the time that it takes to look one up, and gives each away once.
//
// # One write at a time
//
// To bind a claim takes four writes to two objects, and any of them may fail, or be the last before a
// crash. NextForClaim and NextForVolume therefore do not plan four writes; they answer what the next
// one is. Whoever asks
//
//  1. does what the Action says: a write, a live read of what a cache may not know, or the call of a hook;
//  2. puts the server's reply in place of the old object, or the hook's answer among the answers;
//  3. publishes the Action's events, if they are news;
//  4. asks again, until the answer is Nothing or Wait.
//
// The decision has no memory. What a crash leaves is a state like any other, and the next answer goes
// on from there.
//
// # What a decision may know
//
// A View answers look-ups, each with its Evidence. What a cache lacks is Unknown, not gone: before a
// volume is released or a claim is declared lost, the Action is Read, and the decision is made on what
// the server itself says. Snapshot is a View on plain lists, for tests and tools.
//
// # Why is it Pending
//
// ExplainClaim says what a claim waits for, in a typed state and in a sentence, by the decision of NextForClaim itself;
// where volumes were searched it has their numbers and the near miss. match.Explain has every volume with every reason.
// CheckPair looks at a claim and the volume that belongs to it, says what is wrong between them, and whether the
// Controller mends that, a person can, or nobody safely.
//
// # A pod and its nodes
//
// A claim whose class is WaitForFirstConsumer is bound while its pod is scheduled. PlanPod plans the volumes of all
// claims of a pod on one node, together: which exist and are to be bound, which are to be made; or why the pod cannot have
// them there. PlanPodOnNodes does so for all nodes in one call, and Score compares the nodes that will do.
//
// A plan is data. Assumptions keeps what was decided for one pod from being promised to the next, until it is written or
// given up. NextForPlan then says what the next write is, or that all is done, or to wait, or to give up and why; the rest
// of the binding is the Controller's. VolumesOf is for a kubelet: which volumes of a pod may be mounted, and what the others
// wait for. Whether a volume may be used by one node or pod more is package accessmode's to say.
//
// # Storage of one's own
//
// Who makes storage, deletes it or removes the data from it gives the Controller three small functions, as Hooks:
// a Provisioner, a Deleter, a Recycler. When they are to be called, in which order with the writes, and what
// follows when they fail, is decided here. A claim carries the ProvisioningFinalizer from before its provisioner is
// first called until it has its volume, so that nothing which was made for it is left behind if it is deleted
// in between. A volume that is attached to a node is not reclaimed: see AttachmentLister.
//
// Two Controllers at work on one cluster, as while a lease changes hands, never delete what somebody uses. But storage that
// one makes for a claim while the other deletes claim, storage and volume may be left behind (P2).
//
// # The Controller
//
// Controller does the four duties above for any number of goroutines. Its driver has these:
//
//  1. Tell it of every claim, volume and class with Observe and ObserveDeleted; of pods too, if claims are
//     to be protected while in use or are to say which pods they wait for; of VolumeAttachments, if storage is
//     reclaimed. All classes come before the first Sync: a claim whose class is not known is bound at once (M11).
//  2. Call Sync with every key that these return, and with every key in Result.Next.
//  3. If Result.After is not zero, call Sync with the same key again after that time. The error beside it
//     is for the log.
//  4. As a safety net, call Recheck with every claim and volume of the caches from time to time, and Sync with the keys that
//     it returns: that also finds what a server that was restored from a backup has again, or in an older version. An
//     object that came and went while a watch was broken may be known from a reply of the Client alone: read live what
//     no watch has shown by then, and tell of its end with ObserveDeleted.
//
// Equal keys may be folded, and the order of keys does not matter. Package bindingtest has a driver for
// tests, and an API server in memory to go with it.
//
// Drivers for real clusters are modules of their own, so that this one depends on neither client: binding/clientgo, whose
// Runner needs a clientset and nothing else, and binding/controllerruntime, a Reconciler for a manager, with Settle for
// unit tests on envtest or the fake client.
//
// The rules that the code cites, such as M4 or V3, are those of RULES.md beside this file: L how a volume relates to a
// claim, M matching, C claims, B the four writes, V volumes, G migration, R reclaim, F in-use protection, P
// provisioning, S scheduling, E explaining, W waking, N events, X what must never be, A what the API server does.
package binding
