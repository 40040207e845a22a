// Package bindingtest lets a unit test have claims that bind.
//
// Fake clientsets, fake clients and envtest have no volume controller: a claim created there stays
// Pending for ever, and a test has to write the binding itself. Here is a Server, an API server in
// memory for volumes, claims, classes, pods, nodes and attachments, and a Cluster, on which all happens
// that a cluster does by itself: claims are bound, provisioned for by the CSI drivers of their classes,
// and pods placed.
//
//	cluster := bindingtest.NewCluster(bindingtest.Volume("a", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
//	cluster.MustBind(t)
//	cluster.Claim("default", "data").Status.Phase // Bound
//
// SettleOn and MustBindOn do the same on any API: binding/controllerruntime and binding/clientgo have
// them for their clients. SettleOptions say what happens, and an Outcome what is not bound and why.
//
// No goroutine is started, no time passes and nothing is random, so a test neither sleeps nor flakes.
//
// # The server
//
// It does what kube-apiserver does with these kinds, as far as binding and reclaiming can tell (rules A1
// to A6): resourceVersions and conflicts, status apart from spec, what may not change, deletion held by
// finalizers, preconditions, defaults, the finalizers and the default class that admission adds.
// Package conformance holds it and a real API server to the same tests. Errors are those of
// k8s.io/apimachinery/pkg/api/errors. Create, Update, UpdateStatus, Delete, Get and
// List work for every kind; with the typed calls beside them, it is a binding.Client.
//
// It is lenient where binding does not look: namespaces need not exist, pods need no containers and may
// change their spec (setting nodeName is how a test schedules one), and what an owner leaves behind goes
// when CollectGarbage says so. Load takes the objects of a running cluster, or a state that no API server would let in.
//
// # The log
//
// Calls lists every call with the object before and after it, and the events among them. As a string a
// call is one line, made for comparing:
//
//	update pv/a: spec.claimRef={default/data uid-2} +annotation pv.kubernetes.io/bound-by-controller
//
// # Faults
//
// NewClient makes a client with a name in the log and faults of its own; those of a Cluster and of a
// Driver's controller are their Client fields. A fault is a Hook around every call. Fail, Conflict, LoseAnswer and Before make the
// usual ones, CrashAfter stops the client after so many writes, and Driver.Restart brings it back knowing
// nothing. Driver.Hold keeps the changes of a kind from the controller: its cache lags.
//
// # The driver
//
// A Driver runs a binding.Controller step by step, to have it crash, lag, or stand beside another. Its
// Settle runs until idle: it syncs until nothing is left to do, and fails, showing the last writes, if there is no end to it.
// The delays after which a controller syncs again are listed by Delayed and pass with AdvanceClock. Several
// Drivers on one Server are several controllers; the function Settle runs them in turn.
//
// # The storage
//
// A controller that makes storage of its own needs hooks. Storage is a fake of what they stand for: it records
// what exists and every call, fails or lies where a StorageHook says so, and at the end of a test Problems names
// what was leaked, deleted twice or deleted in use. DriverOptions take its Hooks. A Cluster has one for
// the drivers that it plays.
//
// # The files
//
//	cluster.go, objects.go     Cluster, and objects to put into it
//	api.go, settle_on.go, outcome.go   SettleOn: what it is given, how it goes, what it leaves undone
//	settle_pods.go, settle_drivers.go  how it places pods, and plays CSI drivers; topology.go where storage is usable
//	settle_defaults.go, settle_world.go, settle_watched.go   what fakes leave out, what there is, what was written
//	server.go, client.go       Server, and the calls that it and a Client answer
//	create.go, update.go, delete.go, validate.go, load.go, kinds.go   what the server does with a call
//	calls.go, diff.go          the log of calls; watch.go the changes that a cache hears of
//	faults.go                  what goes wrong with a call
//	driver.go, settle.go       Driver, and how it runs until idle
//	storage.go, storage_calls.go, storage_problems.go   Storage, its log and faults, its verdict
package bindingtest
