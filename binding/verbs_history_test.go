package binding_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// TestR7VerbsInHistories plays random histories in which people use the verbs too: one or two controllers with faults
// and caches that lag, and things that happen between what a tool reads and what it writes. The X rules hold, as in
// all histories, and no verb takes a volume from a claim that exists unless the person accepts that. PVBIND_SEED
// replays one; PVBIND_MODEL=long plays many more.
func TestR7VerbsInHistories(t *testing.T) {
	t.Parallel()
	seeds := uint64(1000)
	switch {
	case testing.Short():
		seeds = 60
	case os.Getenv("PVBIND_MODEL") == "long":
		seeds = 100_000
	}
	first := uint64(0)
	if seed := os.Getenv("PVBIND_SEED"); seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
		first, seeds = number, number+1
	}
	done := map[string]int{}
	for seed := first; seed < seeds; seed++ {
		h := newHistory(rand.NewPCG(seed, 7), small)
		playWithVerbs(h, done)
		if len(h.broken) > 0 {
			require.Empty(t, h.broken, "replay with PVBIND_SEED=%d go test ./binding -run '^%s$':\n%s", seed, t.Name(), strings.Join(h.path, "\n"))
		}
	}
	t.Logf("%v", done)
	if first == 0 && !testing.Short() {
		for _, verb := range []string{"open", "reserve", "retain", "UpdateVolume", "DeleteClaim", "CreateClaim", "Done"} {
			require.NotZero(t, done[verb], verb)
		}
	}
}

func playWithVerbs(h *history, done map[string]int) {
	p := &person{history: h, done: done, tool: &tool{client: h.server.NewClient("people")}}
	p.tool.client.Use(p.onCall)
	for range 2 {
		for range h.steps {
			if h.one(4) {
				p.act()
			} else {
				h.step()
			}
		}
		if !h.settle() {
			h.broke("X8: it does not settle")
			return
		}
		h.judgeEnd()
		h.passAgain()
	}
}

// person uses the verbs in a history.
type person struct {
	*history
	tool *tool
	done map[string]int
}

// onCall lets calls fail, take effect unheard, or be preceded by what others do.
func (p *person) onCall(_ *bindingtest.Call, do func() error) error {
	chance := p.IntN(12)
	switch chance {
	case 0:
		return errConnection
	case 2, 3:
		p.step()
	}
	err := do()
	p.judgeCalls("people")
	if chance == 1 {
		return errConnection
	}
	return err
}

func (p *person) act() {
	if p.tool.move.Volume != "" || p.one(3) {
		for range 1 + p.IntN(6) {
			p.moveOn()
		}
		return
	}
	volume := p.server.Volume(p.anyVolume().Name)
	if volume == nil {
		return
	}
	accepting, heir := p.risks(), p.anyClaim()
	known := p.readFor(volume, heir, accepting)
	switch p.IntN(3) {
	case 0:
		change, err := reclaim.Open(volume, known, accepting...)
		p.write("open", volume, change, accepting, err)
	case 1:
		change, err := reclaim.Reserve(volume, toClaim(heir.Namespace, heir.Name), known, accepting...)
		p.write("reserve", volume, change, accepting, err)
	case 2:
		p.write("retain", volume, reclaim.Retain(volume), []reclaim.Risk{reclaim.ClaimLost}, nil)
	}
}

func (p *person) risks() (some []reclaim.Risk) {
	for _, risk := range []reclaim.Risk{reclaim.ClaimLost, reclaim.DataDestroyed, reclaim.PodsDisturbed, reclaim.ReservationLost} {
		if p.one(6) {
			some = append(some, risk)
		}
	}
	return some
}

// readFor reads what Open and Reserve ask for, and time passes.
func (p *person) readFor(volume *corev1.PersistentVolume, heir obj.Key, accepting []reclaim.Risk) reclaim.Known {
	p.tool.known = reclaim.Known{}
	_, err := reclaim.Reserve(volume, toClaim(heir.Namespace, heir.Name), p.tool.known, accepting...)
	if refused := (*reclaim.Refusal)(nil); errors.As(err, &refused) {
		for _, read := range refused.Reads() {
			_ = p.tool.read(context.Background(), read)
		}
	}
	for range p.IntN(4) {
		p.step()
	}
	return p.tool.known
}

// write does what a verb says, and holds it to X2: whoever did not accept it takes a volume from no claim that has it.
func (p *person) write(verb string, volume *corev1.PersistentVolume, change reclaim.Change, accepted []reclaim.Risk, err error) {
	if err != nil {
		p.note("people %s %s: %v", verb, volume.Name, err)
		return
	}
	_, err = p.tool.client.UpdateVolume(context.Background(), change.Volume)
	p.note("people %s %s, accepting %v: %v", verb, volume.Name, accepted, err)
	if err != nil {
		return
	}
	p.done[verb]++
	if volume.Spec.ClaimRef == nil {
		p.judgeUnclaimed(verb, volume, change.Volume, accepted)
		return
	}
	ref := volume.Spec.ClaimRef
	claim := p.server.Claim(ref.Namespace, ref.Name)
	lives := claim != nil && claim.UID == ref.UID && claim.Spec.VolumeName == volume.Name
	if now := change.Volume.Spec.ClaimRef; lives && len(accepted) == 0 && (now == nil || now.UID != ref.UID) {
		p.broke("X2: %s takes %s from %s, which has it", verb, volume.Name, claim.Name)
	}
}

// judgeUnclaimed holds a verb to M2: whoever did not accept it gives a volume without claimRef to nobody but the claim that
// is Bound to it, as far as the server said.
func (p *person) judgeUnclaimed(verb string, before, after *corev1.PersistentVolume, accepted []reclaim.Risk) {
	if verb == "retain" || len(accepted) > 0 {
		return
	}
	for _, claim := range p.tool.known.Claims {
		heir := after.Spec.ClaimRef != nil && after.Spec.ClaimRef.Name == claim.Name
		if claim.Spec.VolumeName == before.Name && claim.Status.Phase == corev1.ClaimBound && !heir {
			p.broke("M2: %s takes %s from %s, which is Bound to it", verb, before.Name, claim.Name)
		}
	}
}

// moveOn goes one step further with a move, or begins one.
func (p *person) moveOn() {
	if p.tool.move.Volume == "" {
		heir := p.anyClaim()
		if p.one(2) {
			heir.Name += "-new"
		}
		p.tool.move = reclaim.Move{Volume: p.anyVolume().Name, To: toClaim(heir.Namespace, heir.Name)}
		p.tool.accepting, p.tool.known = p.risks(), reclaim.Known{}
	}
	step, err := p.tool.turn(context.Background())
	p.note("people move %s: %s: %v", p.tool.move.Volume, step, err)
	if err == nil {
		p.done[string(step.Kind)]++
	}
	refused := (*reclaim.Refusal)(nil)
	switch {
	case step.Kind == "" && !errors.As(err, &refused):
		p.broke("R7: a move ends with %v", err)
		p.tool.move = reclaim.Move{}
	case step.Kind == "", step.Kind == reclaim.StepDone, p.one(20): // as if it crashed
		p.tool.move = reclaim.Move{}
	case step.Kind == reclaim.StepDeleteClaim && err == nil:
		p.judgeDismissal(step)
	}
}

// judgeDismissal is for the moment when a move has deleted the old claim: its volume was read as kept.
func (p *person) judgeDismissal(step reclaim.Step) {
	if claim := p.server.Claim(step.Claim.Namespace, step.Claim.Name); claim != nil && claim.UID == step.Claim.UID && claim.DeletionTimestamp == nil {
		p.broke("R7: %s was deleted, and is there", obj.KeyOf(claim))
	}
	if step.Claim.Spec.VolumeName != p.tool.move.Volume {
		p.broke("R7: %s was deleted, which has another volume, %s", obj.KeyOf(step.Claim), step.Claim.Spec.VolumeName)
	}
}
