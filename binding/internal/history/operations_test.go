package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// TestR7OperationsInHistories plays random histories in which people use the operations too: one or two controllers with faults
// and caches that lag, and things that happen between what a tool reads and what it writes. The X rules hold, as in
// all histories, and no operation takes a volume from a claim that exists unless the person accepts that. PVBIND_SEED
// replays one; PVBIND_MODE=full and long play more.
func TestR7OperationsInHistories(t *testing.T) {
	t.Parallel()
	done := map[string]int{}
	for seed := range Seeds(t, Counts{Short: 5, Usual: 400, Full: 1000, Long: 100_000}) {
		h := newRandom(rand.NewPCG(seed, 7), small)
		playWithOperations(h, done)
		if len(h.Broken) > 0 {
			require.Empty(t, h.Broken, "replay with PVBIND_SEED=%d go test ./binding/internal/history -run '^%s$':\n%s", seed, t.Name(), strings.Join(h.log, "\n"))
		}
	}
	t.Logf("%v", done)
	if os.Getenv("PVBIND_SEED") == "" && !testing.Short() {
		for _, verb := range []string{"open", "reserve", "retain", "UpdateVolume", "DeleteClaim", "CreateClaim", "Done"} {
			require.NotZero(t, done[verb], verb)
		}
	}
}

func playWithOperations(h *History, done map[string]int) {
	p := &person{History: h, done: done, tool: &tool{client: h.Server.NewClient("people")}}
	p.tool.client.Use(p.onCall)
	for range 2 {
		for range h.steps {
			if h.oneIn(4) {
				p.useOperation()
			} else {
				h.step()
			}
		}
		if !h.Settle() {
			h.Broke("X8: it does not settle")
			return
		}
		h.JudgeEnd()
		h.PassAgain()
	}
}

// person uses the operations in a history.
type person struct {
	*History
	tool *tool
	done map[string]int
}

// onCall lets calls fail, take effect unheard, or be preceded by what others do.
func (p *person) onCall(_ *bindingtest.Call, do func() error) error {
	chance := p.IntN(12)
	switch chance {
	case 0:
		return ErrConnection
	case 2, 3:
		p.step()
	}
	err := do()
	p.judgeCalls("people")
	if chance == 1 {
		return ErrConnection
	}
	return err
}

func (p *person) useOperation() {
	if p.tool.transfer.Volume != "" || p.oneIn(3) {
		for range 1 + p.IntN(6) {
			p.continueTransfer()
			for range p.IntN(4) { // a controller lets the claim go
				p.step()
			}
		}
		return
	}
	volume := p.Server.Volume(p.anyVolume().Name)
	if volume == nil {
		return
	}
	accepting, heir := p.risks(), p.anyClaim()
	known := p.readFor(volume, heir, accepting)
	switch p.IntN(3) {
	case 0:
		change, err := reclaim.MakeAvailable(volume, known, accepting...)
		p.write("open", volume, change, accepting, err)
	case 1:
		change, err := reclaim.Reserve(volume, toClaim(heir.Namespace, heir.Name), known, accepting...)
		p.write("reserve", volume, change, accepting, err)
	case 2:
		p.write("retain", volume, reclaim.SetRetain(volume), []reclaim.Risk{reclaim.VolumeLost}, nil)
	}
}

func (p *person) risks() (some []reclaim.Risk) {
	for _, risk := range []reclaim.Risk{reclaim.VolumeLost, reclaim.DataDestroyed, reclaim.PodsDisturbed, reclaim.ReservationLost} {
		if p.oneIn(6) {
			some = append(some, risk)
		}
	}
	return some
}

// readFor reads what Open and Reserve ask for, and time passes.
func (p *person) readFor(volume *corev1.PersistentVolume, heir obj.Key, accepting []reclaim.Risk) reclaim.Known {
	p.tool.known = reclaim.Known{}
	_, err := reclaim.Reserve(volume, toClaim(heir.Namespace, heir.Name), p.tool.known, accepting...)
	if refused := (*reclaim.Error)(nil); errors.As(err, &refused) {
		for _, read := range refused.Reads() {
			_ = p.tool.read(context.Background(), read)
		}
	}
	for range p.IntN(4) {
		p.step()
	}
	return p.tool.known
}

// write does what an operation says, and holds it to X2: whoever did not accept it takes a volume from no claim that has it.
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
	claim := p.Server.Claim(ref.Namespace, ref.Name)
	lives := claim != nil && claim.UID == ref.UID && claim.Spec.VolumeName == volume.Name
	if now := change.Volume.Spec.ClaimRef; lives && len(accepted) == 0 && (now == nil || now.UID != ref.UID) {
		p.Broke("X2: %s takes %s from %s, which has it", verb, volume.Name, claim.Name)
	}
}

// judgeUnclaimed holds an operation to M2: whoever did not accept it gives a volume without claimRef to nobody but the claim that
// is Bound to it, as far as the server said.
func (p *person) judgeUnclaimed(verb string, before, after *corev1.PersistentVolume, accepted []reclaim.Risk) {
	if verb == "retain" || len(accepted) > 0 {
		return
	}
	for _, claim := range p.tool.known.Claims {
		heir := after.Spec.ClaimRef != nil && after.Spec.ClaimRef.Name == claim.Name
		if claim.Spec.VolumeName == before.Name && claim.Status.Phase == corev1.ClaimBound && !heir {
			p.Broke("M2: %s takes %s from %s, which is Bound to it", verb, before.Name, claim.Name)
		}
	}
}

// continueTransfer goes one step further with a transfer, or begins one.
func (p *person) continueTransfer() {
	if p.tool.transfer.Volume == "" {
		heir := p.anyClaim()
		if p.oneIn(2) {
			heir.Name += "-new"
		}
		volume := p.anyVolume().Name
		for range 3 { // one that a claim has, most of the time
			if known := p.Server.Volume(volume); known == nil || known.Status.Phase != corev1.VolumeBound {
				volume = p.anyVolume().Name
			}
		}
		p.tool.transfer = reclaim.Transfer{Volume: volume, To: toClaim(heir.Namespace, heir.Name)}
		p.tool.accepting, p.tool.known = p.risks(), reclaim.Known{}
	}
	step, err := p.tool.step(context.Background())
	p.note("people move %s: %s: %v", p.tool.transfer.Volume, step, err)
	if err == nil {
		p.done[string(step.Kind)]++
	}
	refused := (*reclaim.Error)(nil)
	switch {
	case step.Kind == "" && !errors.As(err, &refused):
		p.Broke("R7: a move ends with %v", err)
		p.tool.transfer = reclaim.Transfer{}
	case step.Kind == "", step.Kind == reclaim.StepDone, p.oneIn(100): // as if it crashed
		p.tool.transfer = reclaim.Transfer{}
	case step.Kind == reclaim.StepDeleteClaim && err == nil:
		p.judgeDismissal(step)
	}
}

// judgeDismissal judges the deletion of the old claim by a transfer: its volume was read as kept.
func (p *person) judgeDismissal(step reclaim.Step) {
	if claim := p.Server.Claim(step.Claim.Namespace, step.Claim.Name); claim != nil && claim.UID == step.Claim.UID && claim.DeletionTimestamp == nil {
		p.Broke("R7: %s was deleted, and is there", obj.KeyOf(claim))
	}
	if step.Claim.Spec.VolumeName != p.tool.transfer.Volume {
		p.Broke("R7: %s was deleted, which has another volume, %s", obj.KeyOf(step.Claim), step.Claim.Spec.VolumeName)
	}
}

// tool is what a person uses the operations with: a client of its own, and what the server said since its last write.
type tool struct {
	client    *bindingtest.Client
	known     reclaim.Known
	transfer  reclaim.Transfer
	accepting []reclaim.Risk
}

// step does the next step of the transfer.
func (t *tool) step(ctx context.Context) (reclaim.Step, error) {
	step, err := reclaim.NextTransfer(t.transfer, t.known, t.accepting...)
	switch step.Kind {
	case reclaim.StepRead:
		return step, t.read(ctx, step.Read)
	case reclaim.StepUpdateVolume:
		_, err = t.client.UpdateVolume(ctx, step.Volume)
	case reclaim.StepDeleteClaim:
		err = t.client.Delete(ctx, obj.KeyOf(step.Claim), metav1.DeleteOptions{Preconditions: &step.Preconditions})
	case reclaim.StepCreateClaim:
		_, err = t.client.Create(ctx, step.Claim)
	}
	t.known = reclaim.Known{}
	return step, err
}

// read asks the server and keeps the answer, also that there is nothing.
func (t *tool) read(ctx context.Context, what obj.Key) error {
	var object obj.Object
	var err error
	switch what.Kind {
	case obj.KindPods:
		pods, err := t.client.ListPods(ctx, what.Namespace)
		if err == nil {
			t.keepPods(what.Namespace, pods)
		}
		return err
	case obj.KindClaims:
		claims, err := t.client.List(ctx, obj.KindClaim, "")
		if err == nil {
			t.keepClaims(claims)
		}
		return err
	case obj.KindVolume:
		object, err = t.client.Get(ctx, obj.VolumeKey(what.Name))
	case obj.KindClaim:
		object, err = t.client.Get(ctx, obj.ClaimKey(what.Namespace, what.Name))
	}
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		t.known.Volumes = append(t.known.Volumes, object)
	case *corev1.PersistentVolumeClaim:
		t.known.Claims = append(t.known.Claims, object)
	default:
		if apierrors.IsNotFound(err) {
			t.known.Missing = append(t.known.Missing, what)
			return nil
		}
	}
	return err
}

// keepClaims keeps a list of all claims in place of those read before.
func (t *tool) keepClaims(claims []obj.Object) {
	t.known.Claims, t.known.AllClaims = nil, true
	for _, claim := range claims {
		t.known.Claims = append(t.known.Claims, claim.(*corev1.PersistentVolumeClaim))
	}
}

func (t *tool) keepPods(namespace string, pods []*corev1.Pod) {
	if t.known.Pods == nil {
		t.known.Pods = map[string][]*corev1.Pod{}
	}
	t.known.Pods[namespace] = pods
}

// restart forgets all but the volume's name, and where it goes if nothing on the volume says so.
func (t *tool) restart(server *bindingtest.Server, to *corev1.PersistentVolumeClaim) {
	t.client.Restart()
	t.known, t.transfer.To = reclaim.Known{}, nil
	volume := server.Volume(t.transfer.Volume)
	if volume == nil || volume.Annotations[reclaim.TransferAnnotation] == "" {
		t.transfer.To = to
	}
}

// errRefused returns the error of a transfer that cannot go on.
func errRefused(step reclaim.Step, err error) error { return fmt.Errorf("%s: %w", step, err) }
