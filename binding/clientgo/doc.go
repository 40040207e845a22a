// Package clientgo runs a binding.Controller on a cluster, by way of client-go.
//
// A Runner is all that a program needs: give it a clientset, and Run it until the program ends. It must not run
// beside kube-controller-manager's persistentvolume-binder-controller, which is switched off with
//
//	kube-controller-manager --controllers='*,-persistentvolume-binder-controller'
//
// Two Runners on one cluster are safe, for every write is made on the version that it was decided on, and what destroys data is
// announced before; but they do the work twice and get in each other's way, so a program with a standby elects a leader, as
// examples/cluster does. Package binding says what holds beside a release that announces nothing, as during a rollout,
// and how to go to and from kube-controller-manager.
//
// # In a scheduler
//
// An Executor plans the volumes of pods by informers, those of kube-scheduler or its own, and gets a pod its volumes on the node
// that was chosen: BindVolumes makes the writes and waits until all claims are bound by whoever does that in the cluster. The
// example of Executor is the least that a plugin of kube-scheduler does, binding/schedulerplugin a whole plugin, and
// examples/extender a program.
//
// # In a unit test
//
// MustBind does in one call what a cluster would have done by now: claims are bound, volumes made by the CSI drivers of their
// classes, and pods placed. It fails the test with the reason if a claim is not Bound; Settle returns the reasons. A fake
// clientset needs one line more, for it has neither UIDs nor versions of its own; a Runner runs on it then as well:
//
//	clientset := fake.NewClientset(objects...)
//	apitest.Back(clientset)
//	clientgo.MustBind(t, clientset)
//
// # Parts
//
// Client and Recorder are the two things that a Controller needs of a cluster. A program that has informers and a queue of
// its own uses them without a Runner; its duties to the Controller then are listed in package binding.
//
// runner.go has the Runner, workers.go its queue and resyncs, watch.go the handlers of informers, informers.go the
// informers of its own, restored.go what notices that the server went back in time, warnings.go what is logged, events.go
// the queue of a recorder; client.go, recorder.go, metrics.go, settle.go, executor.go and stores.go have what their names say. Package apitest is an API server for tests.
//
// # Speed
//
// A bind is four writes, one after the other, so one worker binds a claim in four round trips. Workers bind side by side,
// and what limits them then is first the client: rest.Config's QPS is 5 unless set, which is about one claim a second. A
// negative QPS leaves limits to the server's priority and fairness. A limit that holds each request back for ten seconds keeps
// deleters and recyclers from being called at all (R8), which an event tells. Protobuf (rest.Config's ContentType) saves both sides
// most of the decoding.
//
// # Rights
//
//	persistentvolumes, persistentvolumeclaims    get, list, watch, update
//	persistentvolumes/status, …claims/status     update
//	storageclasses, pods                         list, watch
//	events                                       create, patch
//
// With hooks, persistentvolumes also create and delete; with deleters or recyclers, volumeattachments list and watch, for
// binding.AttachmentLister; with Protection or recyclers, pods also in single namespaces,
// which the right to list them everywhere includes. A manifest is in examples/cluster.
//
// An Executor needs get, list, watch and update for persistentvolumes and persistentvolumeclaims, get, list and watch for pods, and
// list and watch for storageclasses, csidrivers, csistoragecapacities and csinodes.
//
// # Metrics
//
//	pvbind_syncs_total{kind,outcome}               syncs; an outcome other than ok is in the log
//	pvbind_requests_total{verb,resource,outcome}   writes and live reads; conflicts have outcome="conflict"
//	pvbind_bind_seconds                            a histogram: from when a claim is first seen unbound until it is Bound
//	pvbind_queue_length                            what waits for a worker
//	pvbind_server_went_back_total                  how often the server went back in time, as by a restore: see the log
package clientgo
