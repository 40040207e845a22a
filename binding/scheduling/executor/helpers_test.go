package executor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

const (
	local = "local" // a class of volumes that are there
	made  = "made"  // a class of volumes that are made, by the provisioner dirs
	dirs  = "example.com/dirs"
)

// world is a server with a binder, and a scheduler that carries plans out. All of it is driven by the test: the scheduler is
// told of what has changed by report, and the binder works in settle.
type world struct {
	*testing.T
	*Driven
	storage  *bindingtest.Storage
	client   *bindingtest.Client // of the scheduler
	executor *executor.Executor

	watches map[obj.Kind]*bindingtest.Watch
	mutex   sync.Mutex // for seen, into which plans look that are carried out
	seen    map[obj.Key]obj.Object
}

// inWorld runs a test in a world where time passes only when nothing else is left to happen.
func inWorld(t *testing.T, objects []obj.Object, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		waits := func(c *storagev1.StorageClass) {
			c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		}
		classes := []obj.Object{bindingtest.Class(local, waits), bindingtest.Class(made, waits, func(c *storagev1.StorageClass) { c.Provisioner = dirs })}
		storage := bindingtest.NewStorage()
		w := &world{T: t, storage: storage, Driven: NewDrivenWith(bindingtest.DriverOptions{Hooks: storage.Hooks(dirs)}, append(classes, objects...)...)}
		w.client = w.NewClient("scheduler")
		w.restart()
		w.settle()
		test(w)
	})
}

// restart replaces the scheduler's process.
func (w *world) restart() {
	w.client.Restart()
	w.executor = &executor.Executor{Client: w.client, PodGone: func(_ context.Context, pod obj.Key, uid types.UID) bool {
		known := w.lastSeen(pod)
		return known == nil || known.GetUID() != uid
	}}
	w.watches, w.seen = map[obj.Kind]*bindingtest.Watch{}, map[obj.Key]obj.Object{}
	for _, kind := range []obj.Kind{obj.KindPod, obj.KindVolume, obj.KindClaim} {
		w.watches[kind] = w.Watch(kind)
	}
	w.report()
}

// report tells the scheduler what has changed, and lets it do what follows.
func (w *world) report() { w.reportOnly(obj.KindPod, obj.KindVolume, obj.KindClaim) }

// reportOnly reports changes of these kinds.
func (w *world) reportOnly(kinds ...obj.Kind) {
	synctest.Wait()
	for _, kind := range kinds {
		watch := w.watches[kind]
		for change, ok := watch.Next(); ok; change, ok = watch.Next() {
			key, _ := bindingtest.KeyOf(change.Object)
			was := w.lastSeen(key)
			switch {
			case change.Type == bindingtest.Deleted:
				w.see(key, nil)
				w.executor.ObserveDeleted(change.Object)
				continue
			case was == nil:
				w.executor.Observe(change.Object)
			default:
				w.executor.Update(was, change.Object)
			}
			w.see(key, change.Object)
		}
	}
	synctest.Wait()
}

func (w *world) lastSeen(key obj.Key) obj.Object {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.seen[key]
}

// see notes what was reported; nil: that it is gone.
func (w *world) see(key obj.Key, object obj.Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seen[key] = object
}

// settle lets the binder work, and tells the scheduler.
func (w *world) settle() {
	w.Helper()
	synctest.Wait()
	require.NoError(w, w.Settle(w.Context()))
	w.report()
}

// view is what the scheduler knows.
type view struct {
	scheduling.Snapshot
	*executor.Executor
}

func (v view) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	return v.Executor.Volume(name)
}
func (v view) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	return v.Executor.Claim(namespace, name)
}

func (w *world) view() view {
	objects, err := w.List(w.Context(), obj.KindClass, "")
	require.NoError(w, err)
	return view{scheduling.Snapshot{Snapshot: Knowing(objects...)}, w.executor}
}

func (w *world) plan(pod, node string) scheduling.Plan {
	w.Helper()
	stored, err := w.Get(w.Context(), bindingtest.PodKey("default", pod))
	require.NoError(w, err)
	plan, err := scheduling.PlanPod(w.executor.Request(stored.(*corev1.Pod), w.view()), hostNode(node))
	require.NoError(w, err)
	return plan
}

func (w *world) assume(pod, node string) *scheduling.Assumption {
	w.Helper()
	plan := w.plan(pod, node)
	require.True(w, plan.Fits(), plan.Reasons)
	assumption, ok := w.executor.Assume(plan)
	require.True(w, ok)
	return assumption
}

// carrying is a plan that is being carried out.
type carrying struct {
	*world
	ended chan error
}

// carryOut begins to carry out an assumption, and goes on until it waits.
func (w *world) carryOut(ctx context.Context, assumption *scheduling.Assumption) carrying {
	c := carrying{w, make(chan error, 1)}
	go func() { c.ended <- w.executor.CarryOut(ctx, assumption) }()
	synctest.Wait()
	return c
}

// begin plans, assumes, and carries out.
func (w *world) begin(pod, node string) carrying {
	w.Helper()
	return w.carryOut(w.Context(), w.assume(pod, node))
}

func (c carrying) waits() {
	c.Helper()
	synctest.Wait()
	select {
	case err := <-c.ended:
		require.Fail(c, "it has ended", "%v", err)
	default:
	}
}

// bound checks that it has ended well.
func (c carrying) bound() {
	c.Helper()
	require.NoError(c, <-c.ended)
}

// fails checks the outcome, and returns the error.
func (c carrying) fails(outcome executor.Outcome, text string) error {
	c.Helper()
	err := <-c.ended
	var failure *executor.Error
	require.ErrorAs(c, err, &failure)
	assert.Equal(c, outcome, failure.Outcome, "%v", err)
	assert.Contains(c, err.Error(), text)
	return err
}

// writes counts the writes of the scheduler that were stored, and reads its reads.
func (w *world) writes() (writes, reads int) {
	for _, call := range w.Calls() {
		switch {
		case call.Actor != "scheduler":
		case call.Changed():
			writes++
		case call.Verb == bindingtest.VerbGet:
			reads++
		}
	}
	return writes, reads
}

// change changes an object as somebody else does.
func change[T obj.Object](w *world, object T, edits ...func(T)) {
	w.Helper()
	for _, edit := range edits {
		edit(object)
	}
	_, err := w.Update(w.Context(), object)
	require.NoError(w, err)
}

func disk(name, size, node string) *corev1.PersistentVolume {
	return bindingtest.Volume(name, size, OfClass(local), Affine(Term(Require1(corev1.LabelHostname, corev1.NodeSelectorOpIn, node))))
}

func claim(name, size, class string) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim("default", name, size, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })
}

func pod(name string, claims ...string) *corev1.Pod {
	return bindingtest.Pod("default", name, "", claims...)
}

func hostNode(name string) *corev1.Node {
	node := NodeIn("a")
	node.Name, node.Labels[corev1.LabelHostname] = name, name
	return node
}
