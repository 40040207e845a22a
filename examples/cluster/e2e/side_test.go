package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

const (
	shortWorlds = 20
	longWorlds  = 200
	together    = 20 // on a server at the same time
	// restFor is how long nothing may have been written for a cluster to be at rest. Whoever looks at everything again
	// from time to time must do so more often.
	restFor    = 700 * time.Millisecond
	syncPeriod = 200 * time.Millisecond
)

// kube-controller-manager and pvbinder are given the same worlds, and have to make the same of them, up to the listed
// differences.
func TestSideBySide(t *testing.T) {
	seed, n := uint64(time.Now().Unix()), shortWorlds
	if os.Getenv("PVBIND_MODE") == "long" {
		n = longWorlds
	}
	if text := os.Getenv("PVBIND_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("PVBIND_SEED=%d", seed)
	var worlds []*world
	for i := range n {
		worlds = append(worlds, newWorld(seed+uint64(i), i%together == 0))
	}
	theirs := play(t, worlds, func() *controlplane.Process {
		process, err := plane.ControllerManager(
			[]string{controlplane.Binder, controlplane.ClaimProtection, controlplane.VolumeProtection},
			"--pvclaimbinder-sync-period="+syncPeriod.String())
		return cleanedUp(t, process, err)
	})
	ours := play(t, worlds, func() *controlplane.Process { return startBinder(t, "pvbinder", "--protection") })

	steps, different, met, phases := 0, 0, map[string]int{}, map[string]int{}
	for _, w := range worlds {
		same, rule := compare(t, w, theirs[w], ours[w])
		steps += same
		if rule != "" {
			different++
			met[rule]++
		}
		for _, picture := range theirs[w] {
			for object, seen := range picture {
				kind, _, _ := strings.Cut(object, " ")
				phases[kind+" "+seen.Phase]++
			}
		}
	}
	t.Logf("%d worlds, %d steps with the same outcome; worlds in which a listed difference showed: %v", n, steps, met)
	t.Logf("after all steps: %v", phases)
	// A tenth of all, and three more that chance brings into a sample as small as CI's.
	assert.LessOrEqual(t, different, n/10+3, "differences are exceptions")
	for _, phase := range []string{"pv Available", "pv Bound", "pv Released", "pvc Bound", "pvc Lost", "pvc Pending"} {
		assert.NotZero(t, phases[phase], "no %s in any world", phase)
	}
}

// compare compares a world step by step, up to the first listed difference, after which the two are not the same
// world any more. It returns how many steps were alike, and the difference.
func compare(t *testing.T, w *world, theirs, ours []picture) (same int, rule string) {
	t.Helper()
	before := picture{}
	for i, step := range w.steps {
		s := scene{before, theirs[i], ours[i]}
		objects := differing(s.theirs, s.ours)
		if len(objects) == 0 {
			before = ours[i]
			continue
		}
		if rule = s.rule(objects); rule != "" {
			return i, rule
		}
		text := "step " + step.what
		for _, object := range objects {
			text += fmt.Sprintf("\n%s\n\tbefore %+v\n\ttheirs %+v\n\tours   %+v", object, before[object], s.theirs[object], s.ours[object])
		}
		assert.Fail(t, "no listed difference explains this", text)
		return i, ""
	}
	return len(w.steps), ""
}

// play takes worlds through all their steps under one binder, and pictures each after each step.
func play(t *testing.T, worlds []*world, start func() *controlplane.Process) map[*world][]picture {
	t.Helper()
	pictures := map[*world][]picture{}
	for len(worlds) > 0 {
		some := worlds[:min(together, len(worlds))]
		worlds = worlds[len(some):]
		a := newAPI(t)
		process := start()
		rest := a.restless(t)
		for i := range longest(some) {
			require.NoError(t, a.makeAll(t.Context(), some, i))
			rest(t)
			seen, err := a.take(t.Context())
			require.NoError(t, err)
			for _, w := range some {
				if i < len(w.steps) {
					pictures[w] = append(pictures[w], seen.in(w))
				}
			}
		}
		process.Kill()
	}
	return pictures
}

func longest(worlds []*world) int {
	n := 0
	for _, w := range worlds {
		n = max(n, len(w.steps))
	}
	return n
}

// makeAll takes step i of each world.
func (a api) makeAll(ctx context.Context, worlds []*world, i int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range worlds {
		if i >= len(w.steps) {
			continue
		}
		group.Go(func() error {
			for _, change := range w.steps[i].do {
				if err := change.make(ctx, a); err != nil {
					return fmt.Errorf("%s: %w", w.steps[i].what, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// restless returns a function that waits until nothing has been written for a while.
func (a api) restless(t *testing.T) (rest func(*testing.T)) {
	written := make(chan struct{}, 1)
	a.observeAll(t, func(metav1.Object) {
		select {
		case written <- struct{}{}:
		default:
		}
	})
	return func(t *testing.T) {
		deadline := time.After(settleWithin)
		for {
			select {
			case <-written:
			case <-time.After(restFor):
				return
			case <-deadline:
				require.FailNow(t, "this never comes to rest")
			}
		}
	}
}
