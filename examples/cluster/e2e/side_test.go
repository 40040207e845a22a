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
	sampleLimit = 100 // how many a sample may grow to
	together    = 20  // on a server at the same time
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
	found := sideBySide{met: map[string]int{}, phases: map[string]int{}}
	for found.worlds < n {
		found.play(t, seed)
	}
	for found.worlds < sampleLimit && 10*found.different >= found.worlds { // by chance a small sample may have a tenth: a larger one tells
		found.play(t, seed)
	}
	t.Logf("%d worlds, %d steps with the same outcome; worlds in which a listed difference showed: %v", found.worlds, found.steps, found.met)
	t.Logf("after all steps: %v", found.phases)
	assert.Less(t, 10*found.different, found.worlds, "differences are exceptions")
	for _, phase := range []string{"pv Available", "pv Bound", "pv Released", "pvc Bound", "pvc Lost", "pvc Pending"} {
		assert.NotZero(t, found.phases[phase], "no %s in any world", phase)
	}
}

// sideBySide is what came of the worlds that were played so far.
type sideBySide struct {
	worlds, steps, different int
	met, phases              map[string]int // the listed differences, and the phases of volumes and claims
}

// play plays the next worlds under both binders, and compares what came of them.
func (s *sideBySide) play(t *testing.T, seed uint64) {
	t.Helper()
	var worlds []*world
	for i := range together {
		worlds = append(worlds, newWorld(seed+uint64(s.worlds+i), i == 0))
	}
	theirs := play(t, worlds, func() *controlplane.Process {
		process, err := plane.ControllerManager(
			[]string{controlplane.Binder, controlplane.ClaimProtection, controlplane.VolumeProtection},
			"--pvclaimbinder-sync-period="+syncPeriod.String())
		return controlplane.ForTest(t, process, err)
	})
	ours := play(t, worlds, func() *controlplane.Process { return startBinder(t, "pvbinder", "--protection") })
	for _, w := range worlds {
		same, rule := compare(t, w, theirs[w], ours[w])
		s.worlds, s.steps = s.worlds+1, s.steps+same
		if rule != "" {
			s.different++
			s.met[rule]++
		}
		for _, picture := range theirs[w] {
			for object, seen := range picture {
				kind, _, _ := strings.Cut(object, " ")
				s.phases[kind+" "+seen.Phase]++
			}
		}
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
	a := newAPI(t)
	process := start()
	defer process.Kill()
	rest := a.restless(t)
	for i := range longest(worlds) {
		require.NoError(t, a.makeAll(t.Context(), worlds, i))
		rest(t)
		seen, err := a.take(t.Context())
		require.NoError(t, err)
		for _, w := range worlds {
			if i < len(w.steps) {
				pictures[w] = append(pictures[w], seen.in(w))
			}
		}
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
