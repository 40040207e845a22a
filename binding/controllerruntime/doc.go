// Package controllerruntime lets claims bind where controller-runtime is used: in a manager, and in the unit tests of
// controllers and operators, whose claims stay Pending for ever because neither envtest nor the fake client has a volume
// controller.
//
// # In a unit test
//
// Settle does in one call, on any client.Client, what kube-controller-manager would have done by now:
//
//	err := controllerruntime.Settle(ctx, k8sClient)
//
// With envtest, give it a client that is not the manager's, whose cache may lag. The fake client sets
// no defaults. Settle gives objects the defaults that a server would have given them, and a UID, which distinguishes a
// claim from its successor of the same name.
//
// # In a manager
//
// A Reconciler is one controller for both kinds, claims and volumes, because they are synced in turn:
//
//	err := (&controllerruntime.Reconciler{}).SetupWithManager(mgr)
//
// It runs where the manager's leader election lets it, and its metrics are those that controller-runtime has for every
// controller. The manager's cache holds all claims, volumes, classes and, unless switched off, pods; with deleters or
// recyclers, attachments too. Its cache.TransformStripManagedFields saves half of that. A manager whose cache has some
// namespaces only binds the claims in those. The cache's SyncPeriod is how often everything is synced as a safety net.
//
// It must not run beside kube-controller-manager's persistentvolume-binder-controller. Its rights are those listed in
// package clientgo.
//
// Unlike clientgo's Runner, a Reconciler does not find objects that came and went while a watch was broken and that were
// known from a reply of the server only. The volume of such a claim stays Bound until the program starts again. Nor does
// the manager's cache notice that etcd was restored from a backup, if that took its revisions back: later changes are not
// seen for as long as the revisions are behind. Restore with "etcdutl snapshot restore --bump-revision … --mark-compacted", or
// start the program again.
package controllerruntime
