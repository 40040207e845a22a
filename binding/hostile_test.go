package binding_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// A tenant's object may be as large as the API server takes it: 1.5 MiB. What such objects cost is measured here, each with
// one field that is large (X9):
//
//   - a bystander, another tenant's claims and volumes, from Observe to the end of Sync, beside the large object;
//   - how long the large object itself keeps the Controller's lock, in one piece;
//   - the large object, by every function that looks at one of its kind: at twice the size at most 2.5 times.

const (
	besideLimit  = 3.0 // times what the bystander takes beside an ordinary object
	heldLimit    = 3.0 // times what an ordinary object keeps the lock
	doubledLimit = 2.5 // times what half the object costs
	doublings    = 3   // for which that is measured at once
)

// TestX9LargeObjects holds each large object to the limits: in the long mode at the size of a request, in the full mode at a
// quarter of it, and otherwise at a sixteenth (in a short run a hundredth) and without the functions.
func TestX9LargeObjects(t *testing.T) {
	part := map[RunMode]int{RunShort: 100, RunUsual: 16, RunFull: 4, RunLong: 1}[ModeOfRun()]
	for _, row := range largeObjects() {
		if testing.Short() && rand.IntN(3) > 0 {
			continue // one in three, by lot
		}
		t.Run(row.name, func(t *testing.T) {
			size := max(1, row.most/part)
			beside(t, row, size).check(t, "a bystander", besideLimit)
			held(t, row, size).check(t, "the lock", heldLimit)
			if mode := ModeOfRun(); mode == RunShort || mode == RunUsual {
				return
			}
			for name, call := range row.calls() {
				grown(row, size, call).check(t, name, math.Pow(doubledLimit, doublings))
			}
		})
	}
}

// BenchmarkLargeObjects prints the same figures, at the size of a request that the API server still takes.
func BenchmarkLargeObjects(b *testing.B) {
	for _, row := range largeObjects() {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			beside, held := beside(b, row, row.most), held(b, row, row.most)
			b.ReportMetric(beside.ratio(), "x-beside")
			b.ReportMetric(held.ratio(), "x-held")
			b.ReportMetric(float64(held.took[1].Microseconds()), "µs-held")
			worst, of := 0.0, ""
			for name, call := range row.calls() {
				if x := math.Pow(grown(row, row.most, call).ratio(), 1.0/doublings); x > worst {
					worst, of = x, name
				}
			}
			b.ReportMetric(worst, "x-doubled")
			b.Logf("n=%d: a bystander takes %v, and %v beside an ordinary object; the lock is held for at most %v; doubling costs most in %s",
				row.most, beside.took[1], beside.took[0], held.took[1], of)
		})
	}
}

// beside compares a bystander beside the large object with one beside an ordinary one.
func beside(t testing.TB, row largeObject, size int) *comparison {
	measure := func(n int) time.Duration { return besideTime(t, row, n) }
	return &comparison{sizes: [2]int{1, size}, least: 10 * time.Microsecond, measure: measure}
}

// held compares how long in one piece the large object keeps the lock with an ordinary one. A tenth of a millisecond is less
// than a request takes.
func held(t testing.TB, row largeObject, size int) *comparison {
	measure := func(n int) time.Duration { return heldTime(t, row, n) }
	return &comparison{sizes: [2]int{1, size}, least: 100 * time.Microsecond, measure: measure}
}

// grown compares a call for an object with that for an eighth of it, for several doublings show better than one what is linear
// and what is not.
func grown(row largeObject, size int, call func([]obj.Object) func()) *comparison {
	calls := map[int]func(){}
	return &comparison{sizes: [2]int{max(1, size>>doublings), size}, least: 50 * time.Microsecond, measure: func(n int) time.Duration {
		if calls[n] == nil {
			calls[n] = call(row.object(n))
		}
		return best(calls[n])
	}}
}

// comparison measures two sizes again and again, for what else the machine does makes a measurement longer and never shorter.
type comparison struct {
	sizes   [2]int
	measure func(n int) time.Duration
	least   time.Duration    // what a shorter time counts as
	took    [2]time.Duration // the shortest of each
}

func (c *comparison) check(t *testing.T, what string, limit float64) {
	t.Helper()
	x := c.ratio()
	for tries := 1; x > limit && tries < 20; tries++ {
		x = c.ratio()
	}
	assert.LessOrEqual(t, x, limit, "%s: %v for %d, and %v for %d: %.1f times", what, c.took[0], c.sizes[0], c.took[1], c.sizes[1], x)
}

// ratio measures both once more, and returns how many times the first the second is.
func (c *comparison) ratio() float64 {
	for i, n := range c.sizes {
		if took := c.measure(n); c.took[i] == 0 || took < c.took[i] {
			c.took[i] = took
		}
	}
	return float64(max(c.took[1], c.least)) / float64(max(c.took[0], c.least))
}

// best returns the shortest of several measurements of call, in processor time per call: what else the machine does counts
// less in that. Each measurement takes about as long, whatever call takes.
func best(call func()) time.Duration {
	const samples, sample = 2, 8 * time.Millisecond
	shortest := time.Duration(math.MaxInt64)
	for range samples {
		calls, began := 0, processorTime()
		for calls == 0 || processorTime()-began < sample {
			call()
			calls++
		}
		shortest = min(shortest, (processorTime()-began)/time.Duration(calls))
	}
	return shortest
}

// processorTime returns how much of it this process has had.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// besideTime returns what a bystander takes beside the large object, under the lock and not.
func besideTime(t testing.TB, row largeObject, n int) time.Duration {
	if row.beside != nil {
		return best(row.beside(row.object(n)))
	}
	w := newLockWorld(t)
	w.live(row.object(n))
	shortest := time.Duration(math.MaxInt64)
	for i := range 12 {
		shortest = min(shortest, w.bystander(i))
	}
	return shortest
}

// heldTime returns the longest time for which the large object keeps the lock, while it is observed and synced.
func heldTime(t testing.TB, row largeObject, n int) time.Duration {
	if row.beside != nil {
		return 0
	}
	shortest := time.Duration(math.MaxInt64)
	for range 5 {
		w := newLockWorld(t)
		w.longest = 0
		w.live(row.object(n))
		shortest = min(shortest, w.longest)
	}
	return shortest
}

// lockWorld is a Controller without its lock: all that is done under it is timed.
type lockWorld struct {
	t       testing.TB
	server  *bindingtest.Server
	state   *engine.State
	longest time.Duration // for which the lock was held
	total   time.Duration // of Observe and Sync without the server
}

func newLockWorld(t testing.TB) *lockWorld {
	w := &lockWorld{t: t, server: bindingtest.NewServer(), state: engine.New(decision.Options{Protection: decision.ProtectionOn}, 1)}
	for i := range 4 { // somebody else's, for the server to be in use
		w.add([]obj.Object{bindingtest.Claim("other", fmt.Sprint("idle-", i), "9Gi", noClass)})
	}
	return w
}

func noClass(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("") }

// locked times what is done under the lock.
func (w *lockWorld) locked(do func()) {
	began := time.Now()
	do()
	took := time.Since(began)
	w.total += took
	w.longest = max(w.longest, took)
}

// add creates objects, observes them and syncs all that follows.
func (w *lockWorld) add(objects []obj.Object) {
	var keys []obj.Key
	for _, object := range objects {
		created, err := w.server.Create(context.Background(), object)
		require.NoError(w.t, err)
		keys = append(keys, w.observe(created)...)
	}
	w.settle(keys)
}

// live has the large object do what such objects do: a claim is bound to a volume, if one fits, and deleted while a pod uses
// it; then another of the kind comes and stays.
func (w *lockWorld) live(objects []obj.Object) {
	claim, isClaim := objects[0].(*corev1.PersistentVolumeClaim)
	if isClaim {
		bound := claim.DeepCopy()
		bound.Name = "bound"
		w.add([]obj.Object{bindingtest.Pod("tenant", "user", "node", "bound"), bound})
		w.add([]obj.Object{bindingtest.Volume("tenants", "950Gi", func(volume *corev1.PersistentVolume) {
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "bound"}
		})})
		require.NoError(w.t, w.server.Delete(context.Background(), obj.ClaimKey("tenant", "bound"), metav1.DeleteOptions{}))
		if deleted := w.server.Claim("tenant", "bound"); deleted != nil {
			w.settle(w.observe(deleted))
		}
	}
	w.add(objects)
}

func (w *lockWorld) observe(object obj.Object) (keys []obj.Key) {
	var rest []obj.Key
	parsed := engine.Parse(object)
	w.locked(func() { keys, rest = w.state.ObserveParsed(parsed) })
	for some := range slices.Chunk(rest, engine.MaxLinks) {
		w.locked(func() { keys = append(keys, w.state.WokenByClaims(nil, some)...) })
	}
	return keys
}

func (w *lockWorld) settle(keys []obj.Key) {
	for range 10_000 {
		if len(keys) == 0 {
			return
		}
		next := w.sync(keys[0])
		keys = append(keys[1:], next...)
	}
	w.t.Fatal("it does not settle")
}

func (w *lockWorld) sync(key obj.Key) []obj.Key {
	var step engine.Step
	w.locked(func() { step = w.state.StartDraft(key) })
	for !step.Done {
		reply := w.perform(step.Action.Complete()).Parsed()
		w.locked(func() { step = w.state.ProceedDraft(key, reply) })
	}
	return step.Next
}

func (w *lockWorld) perform(action decision.Action) engine.Reply {
	ctx := context.Background()
	volume, claim, err := action.Volume, action.Claim, error(nil)
	switch action.Kind {
	case decision.UpdateVolume:
		volume, err = w.server.UpdateVolume(ctx, volume)
	case decision.UpdateVolumeStatus:
		volume, err = w.server.UpdateVolumeStatus(ctx, volume)
	case decision.UpdateClaim:
		claim, err = w.server.UpdateClaim(ctx, claim)
	case decision.UpdateClaimStatus:
		claim, err = w.server.UpdateClaimStatus(ctx, claim)
	case decision.Read:
		if action.Key.Kind == obj.KindPods {
			pods, err := w.server.ListPods(ctx, action.Key.Namespace)
			return engine.Reply{Pods: pods, Err: err}
		}
		volume, claim = w.server.Volume(action.Key.Name), w.server.Claim(action.Key.Namespace, action.Key.Name)
	default:
		w.t.Fatalf("%s is not expected", action)
	}
	switch {
	case err != nil:
		return engine.Reply{Err: err}
	case volume != nil:
		return engine.Reply{Object: volume}
	case claim != nil:
		return engine.Reply{Object: claim}
	}
	return engine.Reply{Err: NotFoundError(action.Key)}
}

// bystander binds a claim of another tenant's, and lets one wait that no volume fits. It returns how long the Controller took.
func (w *lockWorld) bystander(i int) time.Duration {
	w.total = 0
	suffix := fmt.Sprint(i)
	unmatched := bindingtest.Claim("other", "unmatched-"+suffix, "5Gi", noClass, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}
	})
	w.add([]obj.Object{unmatched})
	w.add([]obj.Object{bindingtest.Claim("other", "data-"+suffix, "5Gi", noClass)})
	w.add([]obj.Object{bindingtest.Volume("pv-"+suffix, "5Gi", func(volume *corev1.PersistentVolume) {
		volume.Labels = map[string]string{"app": "web", "tier": "a"}
	})})
	took := w.total
	require.Equal(w.t, corev1.ClaimBound, w.server.Claim("other", "data-"+suffix).Status.Phase)
	for _, key := range []obj.Key{obj.ClaimKey("other", "unmatched-"+suffix)} {
		w.state.ObserveDeleted(w.state.Known(key))
	}
	return took
}

// names returns n names, short and different.
func names(n int) []string {
	made := make([]string, n)
	for i := range made {
		made[i] = "v" + strconv.FormatInt(int64(i), 36)
	}
	return made
}
