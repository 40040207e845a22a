package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// pvbinder is killed that often while that many claims are bound.
const (
	kills     = 200
	killPairs = 500
)

// X1, X4, X5: what a crash leaves behind is a state like any other.
func TestKilledAgainAndAgain(t *testing.T) {
	a, random := newAPI(t), seeded(t)
	w := watchOver(t, a)
	objects := likePairs(killPairs)
	back := make(chan error, 1) // answers when what was killed is back
	back <- nil
	for life := range kills {
		from, to := life*len(objects)/kills, (life+1)*len(objects)/kills
		require.NoError(t, createPatiently(t.Context(), a, objects[from:to]))
		before := w.seen()
		binder := startBinder(t, "pvbinder")
		switch life {
		case kills / 4, kills * 3 / 4:
			w.await(before + random.IntN(10))
			require.NoError(t, <-back)
			plane.Server().Kill()
			go func() { back <- plane.StartServer() }()
		case kills / 2:
			w.await(before + random.IntN(10))
			require.NoError(t, <-back)
			plane.Etcd().Kill()
			go func() { back <- plane.StartEtcd() }()
		}
		if random.IntN(5) == 0 {
			after(time.Duration(random.IntN(300)) * time.Millisecond) // it may not even have begun
		} else {
			w.await(before + random.IntN(12))
			after(time.Duration(random.IntN(3000)) * time.Microsecond)
		}
		binder.Kill()
	}
	require.NoError(t, <-back)
	t.Logf("%d writes seen when it was killed for the last time", w.seen())
	startBinder(t, "pvbinder")
	allBound(t, a, killPairs)
	assertOneToOne(t, a, killPairs)
	w.assertNoCrime(t)
}

// await waits until so many writes were seen. There may be none to come: it does not wait for ever.
func (w *witness) await(writes int) {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	for w.seen() < writes {
		select {
		case <-w.changed:
		case <-timer.C:
			return
		}
	}
}

// after lets time pass, so that what is killed is killed at any moment.
func after(d time.Duration) { <-time.After(d) }

// createPatiently creates the objects though the server may be away for a while.
func createPatiently(ctx context.Context, a api, objects []obj.Object) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, object := range objects {
		for {
			_, err := a.Create(ctx, object)
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			if ctx.Err() != nil {
				return err
			}
			after(20 * time.Millisecond)
		}
	}
	return nil
}

// allBound waits until n claims are Bound.
func allBound(t testing.TB, a api, n int) {
	t.Helper()
	seen := watchBound(t, a, n, settleWithin)()
	require.Len(t, seen.bound, n)
}

// seeded is a source of randomness, which tells its seed.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Two at once are as correct as one: what the one has written the other loses a conflict over.
func TestTwoAtOnce(t *testing.T) {
	a := newAPI(t)
	w := watchOver(t, a)
	binders := []*controlplane.Process{startBinder(t, "pvbinder-1"), startBinder(t, "pvbinder-2")}
	before, err := countRequests(t.Context(), a)
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, createAll(t.Context(), a, likePairs(killPairs)))
	allBound(t, a, killPairs)
	t.Logf("%d pairs created and bound in %s", killPairs, time.Since(began))
	assertOneToOne(t, a, killPairs)
	w.assertNoCrime(t)
	after, err := countRequests(t.Context(), a)
	require.NoError(t, err)
	t.Log(after.since(before))
	for _, binder := range binders {
		stop(t, binder)
		assert.NotContains(t, binder.Output(), "panic")
	}
}
