package engine_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// stepped is a server and a controller's state between two steps. It can be copied, so that every order
// of steps can be tried from it.
type stepped struct {
	server  *bindingtest.Server
	state   *engine.State
	queue   []obj.Key
	running map[obj.Key]decision.Action
	path    []string
}

func newStepped(objects ...obj.Object) *stepped {
	w := &stepped{server: bindingtest.NewServer(objects...), running: map[obj.Key]decision.Action{}}
	w.restart()
	return w
}

// restart puts a controller in place that knows what the server has now, and nothing else.
func (w *stepped) restart() {
	w.state, w.queue = engine.New(Unprotected(decision.Options{}), 10), nil
	clear(w.running)
	for _, kind := range bindingtest.Kinds() {
		for watch := w.server.Watch(kind); ; {
			change, ok := watch.Next()
			if !ok {
				break
			}
			w.enqueue(w.state.Observe(change.Object))
		}
	}
}

func (w *stepped) enqueue(keys []obj.Key) {
	for _, key := range keys {
		if !slices.Contains(w.queue, key) {
			w.queue = append(w.queue, key)
		}
	}
}

func (w *stepped) clone() *stepped {
	return &stepped{
		server: w.server.Clone(), state: w.state.Clone(), queue: slices.Clone(w.queue),
		running: maps.Clone(w.running), path: slices.Clip(w.path),
	}
}

// choices are the keys that a step can be taken for: those queued, and those with a call under way.
func (w *stepped) choices() []obj.Key {
	keys := slices.Collect(maps.Keys(w.running))
	for _, key := range w.queue {
		if _, runs := w.running[key]; !runs {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b obj.Key) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	return keys
}

// step performs the call that a sync waits for, or begins a sync.
func (w *stepped) step(key obj.Key) {
	var step engine.Step
	if action, runs := w.running[key]; runs {
		w.path = append(w.path, action.String())
		step = w.state.Proceed(key, Perform(w.server, action))
	} else {
		w.queue = slices.DeleteFunc(w.queue, func(queued obj.Key) bool { return queued == key })
		w.path = append(w.path, "sync "+key.String())
		step = w.state.Start(key)
	}
	delete(w.running, key)
	if !step.Done {
		w.running[key] = step.Action
	}
	w.enqueue(step.Next)
}

// explore tries every order of steps from here and calls settled at each end.
func (w *stepped) explore(settled func(*stepped)) {
	choices := w.choices()
	if len(choices) == 0 {
		settled(w)
	}
	for _, key := range choices {
		next := w.clone()
		next.step(key)
		next.explore(settled)
	}
}

func TestEveryOrderOfStepsBindsOneClaimToOneVolume(t *testing.T) {
	world := newStepped(
		bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "a", "1Gi"), bindingtest.Claim("default", "b", "1Gi"),
	)
	ends := 0
	world.explore(func(w *stepped) {
		ends++
		assertOneToOne(t, w, 1)
		require.Equal(t, 4, w.writes(), "B6, W1, after %s", w.path)
	})
	assert.Greater(t, ends, 50)
	t.Logf("%d orders of steps", ends)
}

func TestAnyOrderOfStepsBindsAllOfTheSameSizes(t *testing.T) {
	t.Parallel()
	world := newStepped(
		bindingtest.Volume("one", "1Gi"), bindingtest.Volume("two", "2Gi"),
		bindingtest.Claim("default", "a", "1Gi"), bindingtest.Claim("default", "b", "2Gi"),
	)
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range Worlds(2000) {
		w := world.clone()
		for choices := w.choices(); len(choices) > 0; choices = w.choices() {
			w.step(choices[random.IntN(len(choices))])
		}
		assertOneToOne(t, w, 2)
		require.Equal(t, 8, w.writes(), "B6, M9, seed %d, after %s", seed, w.path)
	}
}

// assertOneToOne checks X1: so many claims are Bound, each to a volume of its own that is Bound to it.
func assertOneToOne(t *testing.T, w *stepped, binds int) {
	t.Helper()
	volumes := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		claim := w.server.Claim("default", name)
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		volume := w.server.Volume(claim.Spec.VolumeName)
		require.Equal(t, claim.UID, volume.Spec.ClaimRef.UID, "X1, after %s", w.path)
		require.Equal(t, corev1.VolumeBound, volume.Status.Phase, "B2, after %s", w.path)
		volumes[volume.Name] = true
	}
	require.Len(t, volumes, binds, "X1, after %s", w.path)
}

func (w *stepped) writes() int {
	n := 0
	for _, call := range w.server.Calls() {
		if call.Verb == bindingtest.VerbUpdate {
			n++
		}
	}
	return n
}

func TestACrashBetweenAnyTwoStepsIsJustAnotherState(t *testing.T) {
	world := newStepped(bindingtest.Volume("big", "2Gi"), bindingtest.Volume("small", "1Gi"), bindingtest.Claim("default", "a", "1Gi"))
	crashes := 0
	for ; len(world.choices()) > 0; world.step(world.choices()[0]) {
		crashed := world.clone()
		crashed.restart()
		for len(crashed.choices()) > 0 {
			crashed.step(crashed.choices()[0])
		}
		crashes++
		assert.Equal(t, "small", crashed.server.Claim("default", "a").Spec.VolumeName, "B5, after %s", crashed.path)
		assert.Equal(t, 4, crashed.writes()-1, "B5: no write twice, and big becomes Available, after %s", crashed.path)
	}
	assert.Greater(t, crashes, 4)
}
