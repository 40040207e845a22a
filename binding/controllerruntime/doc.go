// Package controllerruntime lets claims bind where controller-runtime is used: in a manager, and in the unit tests of
// controllers and operators, whose claims stay Pending for ever because neither envtest nor the fake client has a volume
// controller.
//
// # In a unit test
//
// MustBind does in one call, on any client.Client, what a cluster would have done by now: claims are bound, volumes made by the CSI
// drivers of their classes, and pods placed. It fails the test with the reason if a claim is not Bound; Settle returns the reasons.
//
//	controllerruntime.MustBind(t, k8sClient)
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
// What came and went while a watch was broken, and was known from a reply of the server only, a Reconciler finds within its Resync.
//
// # In a scheduler
//
// An Executor plans the volumes of pods by what the manager's cache shows, and gets a pod its volumes on the node that was chosen:
//
//	volumes, err := controllerruntime.NewExecutor(ctx, mgr)
//	…
//	err = volumes.BindVolumes(ctx, pod, node, nil)
//
// Its rights are those listed in package clientgo. It may be in one manager with a Reconciler.
//
// # After a restore of etcd
//
// The informers of a manager's cache do not notice that etcd was restored from a backup, if that took its revisions back: they
// see nothing for as long as the revisions are behind. Give the manager those of clientgo, which list anew, and all of its
// controllers go on:
//
//	ctrl.Options{Cache: cache.Options{NewInformer: clientgo.NewInformer}}
//
// A Reconciler and an Executor go on without that too. Each Resync they ask how far the server is. If that is behind, they forget, or
// read anew, what they know, and where the cache does not list anew they watch with informers of their own from then on: a Reconciler
// in the namespaces of the cache, an Executor in all. Once these have listed, a Reconciler forgets the pods, attachments and classes
// that the restore has taken. All of that needs the right to list and watch in all namespaces, and as much memory again; what else is in
// the manager sees nothing still, so start the program again when you can. Restoring with "etcdutl snapshot restore
// --bump-revision … --mark-compacted" spares all of that: a Reconciler's next Resync finds what is back, or older than it was.
package controllerruntime
