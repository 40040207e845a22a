// Package preview says what a deletion or an edit would do to volumes and claims and to the data behind them, without
// doing it.
//
// It puts the objects of a cluster into a server in memory, runs the real binding.Controller on it until nothing
// moves, makes the changes, and runs it again. What differs is the Outcome:
//
//	outcome, err := preview.Of(ctx, preview.Cluster{Objects: objects}, preview.Delete(claim))
//	fmt.Print(outcome)
//	// pv/pv-1: Bound -> Released
//	// pvc/shop/orders: Bound -> gone
//	// storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders
//
// What the cluster would do without the changes, because it was not at rest, is in Unsettled.
//
// No storage is touched: the hooks that the controller has here only record their calls. What others than
// the controller do is foreseen as far as the controller's own decisions say: an external provisioner deletes
// the storage of a volume, and the garbage collector deletes what an object owned that goes, such as the
// claim of a pod's ephemeral volume. No new volume is provisioned, and no pod is moved elsewhere.
//
// # Files
//
//   - cluster.go: Cluster, Change and Of; the simulation.
//   - outcome.go: Outcome, Effects and their text.
//   - effects.go: what the simulation has changed, and what becomes of the data.
package preview
