package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// transfer is a case of a volume that is transferred to another claim.
type transfer struct {
	name   string
	policy corev1.PersistentVolumeReclaimPolicy
	by     string // the provisioner that made the volume; "" is a person
	to     *corev1.PersistentVolumeClaim
	before func(w *transferRun) // what there is beside the volume and its claim
	// lag: the controller hears of volumes, or of claims, only where the tool waits.
	lag []obj.Kind
	// eager: the controller goes on after every call of the tool, and not only where it waits.
	eager bool
	// byHand: not a transfer, but the other operations, one after the other, and this one at last.
	byHand operation
	// alone: nobody else creates claims.
	alone bool
}

// operation is MakeAvailable, or Reserve for a claim.
type operation func(volume *corev1.PersistentVolume, known reclaim.Known) (reclaim.Change, error)

const (
	nameRecreated outcome = "somebody creates a claim under the old name"
	newCreated    outcome = "somebody creates the claim under the new name"
)

// transferRun is where a transfer takes place. Each call of the tool and of the controller has a number, and may suffer.
type transferRun struct {
	transfer transfer
	cluster  *Driven
	storage  *bindingtest.Storage
	tool     *tool
	volume   string
	plan     []injection
	calls    []callKind
	owners   []string // the tool or the controller
	armed    bool
	log      []string
	broken   []string
}

var oldKey = obj.ClaimKey("shop", "data")

// newTransferRun has shop/data bound to a volume with data on it.
func newTransferRun(test transfer, plan []injection) *transferRun {
	w := &transferRun{transfer: test, plan: plan, storage: bindingtest.NewStorage()}
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: w.storage.Hooks(Ours, "hostPath")}
	var note []func(*corev1.PersistentVolume)
	if test.by != "" {
		note = append(note, VolumeNote(ProvisionedBy, test.by))
	}
	volume := bindingtest.Volume("pv-1", "5Gi", append(note, WithPolicy(test.policy))...)
	w.cluster = NewDrivenWith(options, volume, bindingtest.Claim("shop", "data", "5Gi", ClaimNote("team", "orders"), func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{"app": "shop"}
	}))
	w.storage.Add(volume)
	w.volume = volume.Name
	w.mustSettle()
	w.storage.Write(w.volume)
	if test.before != nil {
		test.before(w)
		w.mustSettle()
	}
	w.tool = &tool{client: w.cluster.NewClient("tool"), transfer: reclaim.Transfer{Volume: w.volume, To: test.to}}
	w.tool.client.Use(func(call *bindingtest.Call, do func() error) error { return w.onCall("tool", w.tool.client, call, do) })
	w.cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		return w.onCall("controller", w.cluster.Client, call, do)
	})
	w.cluster.Hold(test.lag...)
	w.armed = true
	return w
}

func (w *transferRun) mustSettle() {
	if err := w.cluster.Settle(context.Background()); err != nil {
		panic(err)
	}
}

func (w *transferRun) create(object obj.Object) {
	_, _ = w.cluster.Create(context.Background(), object)
}

// onCall lets a call suffer, and looks at the world after it.
func (w *transferRun) onCall(who string, client *bindingtest.Client, call *bindingtest.Call, do func() error) error {
	if !w.armed || call.Verb == bindingtest.VerbRecord {
		return do()
	}
	defer w.judge()
	kind := aRead
	if call.Writes() {
		kind = aWrite
	}
	at, suffers := len(w.calls), survives
	for _, m := range w.plan {
		if m.at == at {
			suffers = m.outcome
		}
	}
	w.calls, w.owners = append(w.calls, kind), append(w.owners, who)
	w.log = append(w.log, fmt.Sprintf("%d %s: %s %s %s: %s", at, who, call.Verb, call.Subresource, call.Key, suffers))
	switch suffers {
	case loses409:
		return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, call.Key.Name, ErrConnection)
	case nameRecreated:
		w.create(bindingtest.Claim("shop", "data", "1Gi"))
	case newCreated:
		w.create(bindingtest.Claim(w.transfer.to.Namespace, w.transfer.to.Name, "1Gi", Naming(w.volume)))
	}
	return suffer(suffers, client, do)
}

// outcomesOf returns the outcomes that a call can have.
func (w *transferRun) outcomesOf(at int) []outcome {
	outcomes := []outcome{callFails, crashBefore}
	if !w.transfer.alone {
		outcomes = append(outcomes, nameRecreated)
	}
	if w.calls[at] == aWrite {
		outcomes = append(outcomes, answerLost, crashAfter, loses409)
	}
	if w.transfer.to.Spec.VolumeName == "" && !w.transfer.alone {
		outcomes = append(outcomes, newCreated)
	}
	return outcomes
}

// judge returns what must hold at every moment: the volume exists, is kept or held by a claim that exists, and its data is
// intact (X2, X3); no two claims are Bound to it (X1).
func (w *transferRun) judge() {
	broke := func(format string, args ...any) {
		w.broken = append(w.broken, fmt.Sprintf("call %d: ", len(w.calls)-1)+fmt.Sprintf(format, args...))
	}
	volume := w.cluster.Volume(w.volume)
	if volume == nil {
		broke("the volume is gone")
		return
	}
	if ref := volume.Spec.ClaimRef; volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		if claim := w.cluster.Claim(ref.Namespace, ref.Name); claim == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound {
			broke("X2: it is neither kept nor held by a claim that exists")
		}
	}
	kept := w.storage.Kept()
	if len(kept) != 1 || kept[0].Content != bindingtest.Written {
		broke("X2: its data is gone: %v", kept)
	}
	bound := 0
	for _, key := range []obj.Key{oldKey, obj.KeyOf(w.transfer.to)} {
		claim := w.cluster.Claim(key.Namespace, key.Name)
		if claim != nil && claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == w.volume {
			bound++
			if phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound {
				broke("X3: %s is Bound to it and does not hold it", key)
			}
		}
	}
	if bound > 1 {
		broke("X1: two claims are Bound to it")
	}
}

func (w *transferRun) step(ctx context.Context) (reclaim.Step, error) {
	if w.transfer.byHand != nil {
		return w.tool.stepByHand(ctx, w.transfer)
	}
	return w.tool.step(ctx)
}

// run goes on until the tool says that it is done, and all has settled.
func (w *transferRun) run(ctx context.Context) error {
	for range 200 {
		step, err := w.step(ctx)
		w.log = append(w.log, step.String())
		refused := (*reclaim.Error)(nil)
		switch {
		case w.tool.client.Crashed():
			w.tool.restart(w.cluster.Server, w.transfer.to)
			err = nil
		case errors.As(err, &refused):
			return errRefused(step, err)
		case step.Kind == reclaim.StepDone:
			w.cluster.Release(w.transfer.lag...)
			return w.settle(ctx)
		case step.Kind == reclaim.StepWait:
			w.cluster.Release(w.transfer.lag...)
			err = w.settle(ctx)
			w.cluster.Hold(w.transfer.lag...)
		case w.transfer.eager:
			err = w.settle(ctx)
		default:
			err = nil // it tries again
		}
		if err != nil {
			return err
		}
	}
	return errors.New("it does not end")
}

// settle lets the controller go on, and starts it again where it crashed.
func (w *transferRun) settle(ctx context.Context) error {
	for range 20 {
		err := w.cluster.AdvanceClock(ctx)
		switch {
		case errors.Is(err, bindingtest.ErrCrashed):
			w.cluster.Restart()
			w.log = append(w.log, "the controller restarts")
		case len(w.cluster.Delayed()) == 0:
			return err
		}
	}
	return fmt.Errorf("X8: it does not settle: %v", w.cluster.Delayed())
}

func (w *transferRun) claims() []string {
	list, _ := w.cluster.List(context.Background(), obj.KindClaim, "")
	var names []string
	for _, object := range list {
		names = append(names, object.GetNamespace()+"/"+object.GetName())
	}
	slices.Sort(names)
	return names
}

func (w *transferRun) deleteOld() {
	_ = w.cluster.Delete(context.Background(), oldKey, metav1.DeleteOptions{})
}
