package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// callKind is what kind of call a controller makes.
type callKind string

const (
	aWrite callKind = "write"
	aRead  callKind = "read"
	aHook  callKind = "hook"
)

// outcome is what happens to a call, or before it.
type outcome string

const (
	survives    outcome = ""
	callFails   outcome = "fails"
	answerLost  outcome = "is done but answers an error"
	crashBefore outcome = "crash before"
	crashAfter  outcome = "crash after"
	loses409    outcome = "conflict"
	toldAbsent  outcome = "NotFound, whatever there is"
	hookPanics  outcome = "panic"
	hookUnready outcome = "in progress"

	// What people do just before a call: the controller hears of it after the sync, or at once.
	claimDeleted     outcome = "claim deleted"
	claimDeletedTold outcome = "claim deleted, and told"
	rivalComes       outcome = "another volume"
	rivalComesTold   outcome = "another volume, and told"
	classChanges     outcome = "another provisioner"
	classChangesTold outcome = "another provisioner, and told"
	volumeDeleted    outcome = "bound volume deleted"
)

func (l lifecycle) outcomesOf(kind callKind) []outcome {
	outcomes := map[callKind][]outcome{
		aWrite: {callFails, answerLost, crashBefore, crashAfter, loses409},
		aRead:  {callFails, crashBefore, toldAbsent},
		aHook:  {callFails, answerLost, crashBefore, crashAfter, hookPanics, hookUnready},
	}
	all := outcomes[kind]
	for _, outcome := range append([]outcome{claimDeleted, claimDeletedTold}, l.people...) {
		if !slices.Contains(all, outcome) {
			all = append(all, outcome)
		}
	}
	return all
}

// injection is a outcome that befalls the call of that number.
type injection struct {
	at      int
	outcome outcome
}

// lifecycleRun is where a life takes place.
type lifecycleRun struct {
	lifecycle lifecycle
	cluster   *Driven
	storages  []*bindingtest.Storage // those of ours, and of the other provisioner

	plan  []injection
	calls []callKind
	quiet bool     // nothing happens, and nothing is counted
	log   []string // the calls, for people

	deleted bool   // the claim was deleted before it was its time
	written string // the volume with data on it
	nodes   int    // chosen so far
}

func newLifecycleRun(test lifecycle, plan []injection) *lifecycleRun {
	w := &lifecycleRun{lifecycle: test, plan: plan, storages: []*bindingtest.Storage{bindingtest.NewStorage(), bindingtest.NewStorage()}}
	set := w.storages[0].Hooks(Ours, "hostPath")
	maps.Copy(set.Provisioners, w.storages[1].Hooks(Other).Provisioners)
	maps.Copy(set.Deleters, w.storages[1].Hooks(Other).Deleters)
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: set}
	w.cluster = NewDrivenWith(options, test.objects()...)
	if volume := w.cluster.Volume("a"); volume != nil {
		w.storages[0].Add(volume)
	}
	w.cluster.Client.Use(w.onServer)
	for i, storage := range w.storages {
		storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
			return w.onHook(fmt.Sprintf("storage %d", i), call, do)
		})
	}
	w.create(bindingtest.Claim("default", "data", "1Gi", RequestingClass(&test.class)))
	return w
}

func (w *lifecycleRun) create(object obj.Object) {
	if _, err := w.cluster.Create(context.Background(), object); err != nil {
		panic(err)
	}
}

func (w *lifecycleRun) last() int {
	if len(w.plan) == 0 {
		return -1
	}
	return w.plan[len(w.plan)-1].at
}

// next returns the outcome of the next call. What people do before it is done then.
func (w *lifecycleRun) next(kind callKind, line string) outcome {
	if w.quiet {
		return survives
	}
	at := len(w.calls)
	w.calls = append(w.calls, kind)
	suffers := survives
	for _, m := range w.plan {
		if m.at == at {
			suffers = m.outcome
		}
	}
	w.log = append(w.log, fmt.Sprintf("%d %s %s", at, line, suffers))
	w.people(suffers)
	return suffers
}

// people do something, if the outcome says so.
func (w *lifecycleRun) people(suffers outcome) {
	ctx := context.Background()
	switch suffers {
	case claimDeleted, claimDeletedTold:
		w.deleted = true
		w.deleteClaim()
	case rivalComes, rivalComesTold:
		rival := bindingtest.Volume("rival", "1Gi", OfClass("dirs"), WithPolicy(corev1.PersistentVolumeReclaimDelete))
		if _, err := w.cluster.Create(ctx, rival); err == nil {
			w.storages[0].Add(rival)
		}
	case classChanges, classChangesTold:
		_ = w.cluster.Delete(ctx, obj.Key{Kind: obj.KindClass, Name: "dirs"}, metav1.DeleteOptions{})
		w.create(DirsClass(Other, corev1.PersistentVolumeReclaimDelete))
	case volumeDeleted:
		if claim := w.cluster.Claim("default", "data"); claim != nil && claim.Status.Phase == corev1.ClaimBound {
			_ = w.cluster.Delete(ctx, obj.VolumeKey(claim.Spec.VolumeName), metav1.DeleteOptions{})
		}
	}
	switch suffers {
	case claimDeletedTold, rivalComesTold, classChangesTold:
		for _, kind := range bindingtest.Kinds() {
			w.cluster.Deliver(kind, 100)
		}
	}
}

func (w *lifecycleRun) deleteClaim() {
	_ = w.cluster.Delete(context.Background(), DataKey, metav1.DeleteOptions{})
}

func (w *lifecycleRun) onServer(call *bindingtest.Call, do func() error) error {
	kind := aRead
	switch {
	case call.Verb == bindingtest.VerbRecord:
		return do()
	case call.Writes():
		kind = aWrite
	}
	suffers := w.next(kind, fmt.Sprintf("%s %s %s", call.Verb, call.Subresource, call.Key))
	switch suffers {
	case loses409:
		return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, call.Key.Name, ErrConnection)
	case toldAbsent:
		if call.Verb == bindingtest.VerbGet {
			return NotFoundError(call.Key)
		}
	}
	return w.suffer(suffers, do)
}

func (w *lifecycleRun) onHook(who string, call *bindingtest.StorageCall, do func() error) error {
	if w.cluster.Client.Crashed() {
		return bindingtest.ErrCrashed
	}
	switch suffers := w.next(aHook, who+": "+call.String()); suffers {
	case hookPanics:
		panic("by a test")
	case hookUnready:
		return &hooks.Error{Meaning: hooks.InProgress, After: time.Minute}
	default:
		return w.suffer(suffers, do)
	}
}

func (w *lifecycleRun) suffer(suffers outcome, do func() error) error {
	return suffer(suffers, w.cluster.Client, do)
}

func suffer(suffers outcome, client *bindingtest.Client, do func() error) error {
	switch suffers {
	case callFails:
		return ErrConnection
	case answerLost:
		_ = do()
		return ErrConnection
	case crashAfter:
		_ = do()
		fallthrough
	case crashBefore:
		client.CrashAfter(0)
		return bindingtest.ErrCrashed
	}
	return do()
}

// settle goes on until nothing is left to do and nothing is delayed, and starts the controller again where it
// crashed. A scheduler chooses a node where one is missing.
func (w *lifecycleRun) settle() error {
	held := false
	for range 60 {
		err := w.cluster.AdvanceClock(context.Background())
		w.cluster.Release(obj.KindClaim)
		switch {
		case errors.Is(err, bindingtest.ErrCrashed):
			w.cluster.Restart()
			w.log = append(w.log, "restart")
			if w.lifecycle.late {
				w.cluster.Hold(obj.KindClaim)
				held = true
				continue
			}
		case w.schedule(), held, len(w.cluster.Delayed()) > 0:
		default:
			return err
		}
		held = false
	}
	return fmt.Errorf("X8: it does not settle: %v", w.cluster.Delayed())
}

// schedule chooses another node each time, and reports whether it had to.
func (w *lifecycleRun) schedule() bool {
	claim := w.cluster.Claim("default", "data")
	if w.lifecycle.class == "" || claim == nil {
		return false
	}
	class, err := w.cluster.Get(context.Background(), obj.Key{Kind: obj.KindClass, Name: w.lifecycle.class})
	if err != nil || !delayed(class) || !choose(w.cluster, claim, fmt.Sprintf("node-%d", w.nodes)) {
		return false
	}
	w.nodes++
	return true
}

// choose chooses a node for a claim that waits for one, as a scheduler does, and reports whether it does wait.
func choose(cluster *Driven, claim *corev1.PersistentVolumeClaim, node string) bool {
	if claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || claim.Annotations[SelectedNode] != "" {
		return false
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, SelectedNode, node)
	_, err := cluster.Update(context.Background(), claim)
	return err == nil
}

func delayed(class obj.Object) bool {
	mode := class.(*storagev1.StorageClass).VolumeBindingMode
	return mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
}
