package binding_test

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

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// callKind is what kind of call a controller makes.
type callKind string

const (
	aWrite callKind = "write"
	aRead  callKind = "read"
	aHook  callKind = "hook"
)

// fate is what happens to a call, or before it.
type fate string

const (
	survives    fate = ""
	callFails   fate = "fails"
	answerLost  fate = "is done but answers an error"
	crashBefore fate = "crash before"
	crashAfter  fate = "crash after"
	loses409    fate = "conflict"
	toldAbsent  fate = "NotFound, whatever there is"
	hookPanics  fate = "panic"
	hookUnready fate = "in progress"

	// What people do just before a call: the controller hears of it after the sync, or at once.
	claimDeleted     fate = "claim deleted"
	claimDeletedTold fate = "claim deleted, and told"
	rivalComes       fate = "another volume"
	rivalComesTold   fate = "another volume, and told"
	classChanges     fate = "another provisioner"
	classChangesTold fate = "another provisioner, and told"
	volumeDeleted    fate = "bound volume deleted"
)

func (l life) fatesOf(kind callKind) []fate {
	fates := map[callKind][]fate{
		aWrite: {callFails, answerLost, crashBefore, crashAfter, loses409},
		aRead:  {callFails, crashBefore, toldAbsent},
		aHook:  {callFails, answerLost, crashBefore, crashAfter, hookPanics, hookUnready},
	}
	all := fates[kind]
	for _, fate := range append([]fate{claimDeleted, claimDeletedTold}, l.people...) {
		if !slices.Contains(all, fate) {
			all = append(all, fate)
		}
	}
	return all
}

// mishap is a fate that befalls the call of that number.
type mishap struct {
	at   int
	fate fate
}

// lifetime is where a life takes place.
type lifetime struct {
	story    life
	cluster  *bindingtest.Cluster
	storages []*bindingtest.Storage // those of ours, and of the other provisioner

	plan  []mishap
	calls []callKind
	quiet bool     // nothing happens, and nothing is counted
	told  []string // the calls, for people

	deleted bool   // the claim was deleted before it was its time
	written string // the volume with data on it
	nodes   int    // chosen so far
}

func newLifetime(story life, plan []mishap) *lifetime {
	w := &lifetime{story: story, plan: plan, storages: []*bindingtest.Storage{bindingtest.NewStorage(), bindingtest.NewStorage()}}
	hooks := w.storages[0].Hooks(ours, "hostPath")
	maps.Copy(hooks.Provisioners, w.storages[1].Hooks(other).Provisioners)
	maps.Copy(hooks.Deleters, w.storages[1].Hooks(other).Deleters)
	options := bindingtest.Options{Rules: binding.Rules{Protection: binding.ProtectionOn}, Hooks: hooks}
	w.cluster = bindingtest.NewClusterWith(options, story.objects()...)
	if volume := w.cluster.Volume("a"); volume != nil {
		w.storages[0].Add(volume)
	}
	w.cluster.Client.Use(w.onServer)
	for i, storage := range w.storages {
		storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
			return w.onHook(fmt.Sprintf("storage %d", i), call, do)
		})
	}
	w.create(bindingtest.Claim("default", "data", "1Gi", askingClass(&story.class)))
	return w
}

func (w *lifetime) create(object obj.Object) {
	if _, err := w.cluster.Create(context.Background(), object); err != nil {
		panic(err)
	}
}

func (w *lifetime) last() int {
	if len(w.plan) == 0 {
		return -1
	}
	return w.plan[len(w.plan)-1].at
}

// next is the fate of the next call. What people do before it is done then.
func (w *lifetime) next(kind callKind, line string) fate {
	if w.quiet {
		return survives
	}
	at := len(w.calls)
	w.calls = append(w.calls, kind)
	suffers := survives
	for _, m := range w.plan {
		if m.at == at {
			suffers = m.fate
		}
	}
	w.told = append(w.told, fmt.Sprintf("%d %s %s", at, line, suffers))
	w.people(suffers)
	return suffers
}

// people do something, if the fate says so.
func (w *lifetime) people(suffers fate) {
	ctx := context.Background()
	switch suffers {
	case claimDeleted, claimDeletedTold:
		w.deleted = true
		w.deleteClaim()
	case rivalComes, rivalComesTold:
		rival := bindingtest.Volume("rival", "1Gi", ofClass("dirs"), withPolicy(corev1.PersistentVolumeReclaimDelete))
		if _, err := w.cluster.Create(ctx, rival); err == nil {
			w.storages[0].Add(rival)
		}
	case classChanges, classChangesTold:
		_ = w.cluster.Delete(ctx, obj.Key{Kind: bindingtest.KindClass, Name: "dirs"}, metav1.DeleteOptions{})
		w.create(dirsClass(other, corev1.PersistentVolumeReclaimDelete))
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

func (w *lifetime) deleteClaim() {
	_ = w.cluster.Delete(context.Background(), dataKey, metav1.DeleteOptions{})
}

func (w *lifetime) onServer(call *bindingtest.Call, do func() error) error {
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
		return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, call.Key.Name, errConnection)
	case toldAbsent:
		if call.Verb == bindingtest.VerbGet {
			return notFoundError(call.Key)
		}
	}
	return w.suffer(suffers, do)
}

func (w *lifetime) onHook(who string, call *bindingtest.StorageCall, do func() error) error {
	if w.cluster.Client.Crashed() {
		return bindingtest.ErrCrashed
	}
	switch suffers := w.next(aHook, who+": "+call.String()); suffers {
	case hookPanics:
		panic("by a test")
	case hookUnready:
		return &binding.HookError{Meaning: binding.HookInProgress, After: time.Minute}
	default:
		return w.suffer(suffers, do)
	}
}

func (w *lifetime) suffer(suffers fate, do func() error) error {
	return suffer(suffers, w.cluster.Client, do)
}

func suffer(suffers fate, client *bindingtest.Client, do func() error) error {
	switch suffers {
	case callFails:
		return errConnection
	case answerLost:
		_ = do()
		return errConnection
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
func (w *lifetime) settle() error {
	held := false
	for range 60 {
		err := w.cluster.FallDue(context.Background())
		w.cluster.Release(obj.KindClaim)
		switch {
		case errors.Is(err, bindingtest.ErrCrashed):
			w.cluster.Restart()
			w.told = append(w.told, "restart")
			if w.story.late {
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
func (w *lifetime) schedule() bool {
	claim := w.cluster.Claim("default", "data")
	if w.story.class == "" || claim == nil {
		return false
	}
	class, err := w.cluster.Get(context.Background(), obj.Key{Kind: bindingtest.KindClass, Name: w.story.class})
	if err != nil || !delayed(class) || !choose(w.cluster, claim, fmt.Sprintf("node-%d", w.nodes)) {
		return false
	}
	w.nodes++
	return true
}

// choose chooses a node for a claim that waits for one, as a scheduler does, and reports whether it does wait.
func choose(cluster *bindingtest.Cluster, claim *corev1.PersistentVolumeClaim, node string) bool {
	if claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || claim.Annotations[selectedNode] != "" {
		return false
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, node)
	_, err := cluster.Update(context.Background(), claim)
	return err == nil
}

func delayed(class obj.Object) bool {
	mode := class.(*storagev1.StorageClass).VolumeBindingMode
	return mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
}
