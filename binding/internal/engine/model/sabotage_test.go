package model_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
)

// sabotage is a way in which the model breaks a controller on purpose, to see that it is noticed.
type sabotage string

const (
	dropsVersion sabotage = "writes carry no resourceVersion"
	trustsCache  sabotage = "reads are answered from the cache"
	wakesNobody  sabotage = "what a sync asks to be synced next is not"
	tellsNobody  sabotage = "no event is sent"
	scrubsInUse  sabotage = "a volume is scrubbed once a claim is Bound to it"
	givesAway    sabotage = "a volume that is Released loses its claimRef, and keeps its data"
	// takesAnyToken is about the storage: what remains then of the promise of R8.
	takesAnyToken sabotage = "the storage takes any token"
)

// sabotaged returns what comes of a call.
func (m *model) sabotaged(now *state, l *leader, running *request) answer {
	changed := *running
	running = &changed
	action := &running.action
	switch {
	case m.sabotage == dropsVersion && action.Volume != nil:
		action.Volume = action.Volume.DeepCopy()
		action.Volume.ResourceVersion = ""
	case m.sabotage == dropsVersion && action.Claim != nil:
		action.Claim = action.Claim.DeepCopy()
		action.Claim.ResourceVersion = ""
	case m.sabotage == trustsCache && action.Kind == decision.Read && !isList(action.Key):
		if known := l.state.Known(action.Key); known != nil {
			return answer{got: m.of(known)}
		}
		return answer{fail: notFound}
	}
	got := m.perform(now, running)
	volume := now.server.volume("x")
	switch {
	case m.sabotage == scrubsInUse && action.Claim != nil && action.Claim.Status.Phase == corev1.ClaimBound:
		m.runHook(now, &request{action: decision.Action{Kind: decision.RunRecycler, Rule: "R4", Volume: volume}})
	case m.sabotage == givesAway && action.Volume != nil && action.Volume.Status.Phase == corev1.VolumeReleased && volume.Spec.ClaimRef != nil:
		freed := volume.DeepCopy()
		freed.Spec.ClaimRef = nil
		now.server.update(freed, specPart)
	}
	return got
}

// TestModelNoticesSabotage breaks controllers on purpose. Each is caught, and the counterexample is short.
func TestModelNoticesSabotage(t *testing.T) {
	tests := []struct {
		sabotage sabotage
		world    string
		want     string
		moves    int // at most
	}{
		{dropsVersion, "two claims and a volume", "X2", 20},
		{trustsCache, "a pair, an action and a fault", "X2", 20},
		{wakesNobody, "two claims and a volume", "C1", 20},
		{tellsNobody, "two claims and a volume", "X10", 20},
		{scrubsInUse, "Recycle for another, and a fault", "X2", 60},
		{givesAway, "Recycle for another, and a fault", "X3", 60},
	}
	if testing.Short() { // one of them, by lot
		n := rand.IntN(len(tests))
		tests = tests[n : n+1]
	}
	for _, test := range tests {
		t.Run(string(test.sabotage), func(t *testing.T) {
			world := worldNamed(test.world)
			world.sabotage, world.limit = test.sabotage, 150_000
			m := newModel(world)
			found := m.explore()
			require.NotEmpty(t, found.broken)
			assert.Contains(t, found.broken, test.want)
			assert.LessOrEqual(t, len(found.path), test.moves)
			t.Logf("%d states\n%s", found.states, m.scenario(found.broken, found.path))
		})
	}
}

func worldNamed(name string) modelWorld {
	for _, world := range modelWorlds() {
		if world.name == name {
			return world
		}
	}
	panic("there is no world " + name)
}

// TestModelNoticesStorageThatTakesAnyToken has a leader that is paused before its recycler, until another has scrubbed the
// storage and bound the volume to the next claim. Storage that takes any token scrubs that claim's data (X2), which is what
// remains of R8. Without so long a pause it does not.
func TestModelNoticesStorageThatTakesAnyToken(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	world := worldNamed("a recycler, a claim that waits and two leaders")
	world.sabotage, world.limit = takesAnyToken, 150_000
	assert.Contains(t, newModel(world).exploreIn(depthFirst).broken, "X2: R4 RunRecycler pv/x")
	world.pauses = 0
	assert.Empty(t, newModel(world).exploreIn(depthFirst).broken)
}

// TestModelNoticesASilentError expects another error of a bad object than there is (X7).
func TestModelNoticesASilentError(t *testing.T) {
	world := worldNamed("a bad class")
	world.wantErrors, world.people = map[string]string{"pvc/default/a": "another error"}, 0
	assert.Contains(t, newModel(world).explore().broken, "X7")
}
