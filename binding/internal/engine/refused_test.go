package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

func TestARefusedWriteGivesTheVolumeBack(t *testing.T) {
	kind := schema.GroupKind{Kind: "PersistentVolume"}
	for name, refusal := range map[string]error{
		"Forbidden":       apierrors.NewForbidden(schema.GroupResource{}, "pv", errors.New("no")),
		"Invalid":         apierrors.NewInvalid(kind, "pv", field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "no")}),
		"TooManyRequests": apierrors.NewTooManyRequests("later", 1),
	} {
		t.Run("W1 "+name, func(t *testing.T) {
			cluster := NewDriven(bindingtest.Volume("pv", "5Gi"), bindingtest.Claim("default", "data", "2Gi"), bindingtest.Claim("default", "small", "1Gi"))
			refused := 0
			cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
				if volume, ok := call.Sent.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Name == "data" {
					refused++
					return refusal
				}
				return do()
			})

			_ = cluster.Settle(t.Context())

			assert.Positive(t, refused)
			assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "small").Status.Phase, "the next one has it")
			assert.Equal(t, corev1.ClaimPending, cluster.Claim("default", "data").Status.Phase)
			_, reads := ControllerCalls(cluster.Server)
			assert.Empty(t, reads, "what was refused did not happen")
		})
	}
}

// TestNAWriteThatIsRejectedIsTold has the server reject the third write of a bind again and again: the claim's, which a tenant can
// fill until nothing has room in it.
func TestNAWriteThatIsRejectedIsTold(t *testing.T) {
	full := field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", 262144)}
	for name, test := range map[string]struct {
		reply engine.Reply
		told  bool
	}{
		"N Invalid":                  {engine.Reply{Err: apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "data", full)}, true},
		"N Forbidden":                {engine.Reply{Err: apierrors.NewForbidden(schema.GroupResource{}, "data", errors.New("exceeded quota"))}, true},
		"N too large for etcd":       {engine.Reply{Err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request is too large"}}}, true},
		"N webhook is not there":     {engine.Reply{Err: apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": connection refused`))}, true},
		"N webhook denies":           {engine.Reply{Err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 503, Message: `admission webhook "a.b.c" denied the request: no`}}}, true},
		"N RequestEntityTooLarge":    {engine.Reply{Err: apierrors.NewRequestEntityTooLargeError("limit is 3145728")}, true},
		"N nothing is stored":        {engine.Reply{Object: KnownClaim()}, true},
		"N TooManyRequests":          {engine.Reply{Err: apierrors.NewTooManyRequests("later", 1)}, false},
		"N Unauthorized":             {engine.Reply{Err: apierrors.NewUnauthorized("who are you")}, false},
		"N webhook denies, code 418": {engine.Reply{Err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 418, Message: `admission webhook "a.b.c" denied the request: no`}}}, true},
		"N webhook denies, code 429": {engine.Reply{Err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: `admission webhook "a.b.c" denied the request: no`}}}, true},
		"N internal error":           {engine.Reply{Err: apierrors.NewInternalError(errors.New("boom"))}, false},
		"N no answer":                {engine.Reply{Err: context.DeadlineExceeded}, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), KnownClaim())
			now := time.Time{}
			reject := func() (told []string) {
				now = now.Add(2 * time.Minute)
				state.SetTime(now)
				step := state.Start(DataKey)
				for !step.Done {
					for _, event := range step.Publish {
						told = append(told, event.String())
					}
					if step.Action.Kind == decision.Read {
						step = state.Proceed(DataKey, engine.Reply{Object: KnownClaim()})
						continue
					}
					require.Equal(t, "B3", step.Action.Rule)
					step = state.Proceed(DataKey, test.reply)
				}
				require.Error(t, step.Err)
				assert.Positive(t, step.After, "W6")
				for _, event := range step.Publish {
					told = append(told, event.String())
				}
				return told
			}
			first, then := reject(), append(reject(), reject()...)
			assert.Empty(t, then, "it is said once")
			if !test.told {
				assert.Empty(t, first)
				return
			}
			require.Len(t, first, 1)
			assert.Contains(t, first[0], "Warning FailedUpdate pvc/default/data: the next change to pvc/default/data")
			if test.reply.Err != nil {
				assert.Contains(t, first[0], test.reply.Err.Error())
			}
		})
	}
}

func TestW6DelaysGrow(t *testing.T) {
	state := stateOf(KnownVolume("a"), KnownClaim())
	fail := func(err error) time.Duration {
		for step := state.Start(DataKey); ; step = state.Proceed(DataKey, engine.Reply{Err: err}) {
			if step.Done {
				return step.After
			}
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	var delays []time.Duration
	for range 40 {
		delays = append(delays, fail(forbidden))
	}
	assert.Equal(t, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}, delays[:4], "W6")
	assert.IsNonDecreasing(t, delays, "W6")
	assert.Equal(t, 2*time.Minute, delays[39], "W6: bounded")

	state.ObserveDeleted(KnownVolume("a"))
	assert.Zero(t, state.Start(DataKey).After, "C5 is no failure")
	state.Observe(At("20", KnownVolume("b", func(v *corev1.PersistentVolume) { v.UID = "uid-of-b" })))
	assert.Equal(t, 500*time.Millisecond, fail(forbidden), "W6: from the start again")
}

// TestW6AWriteThatIsUndoneWithoutEnd has an admission webhook change every volume but not let any claimRef, or the UID in
// one, into it, or every claim, but for an annotation: each write succeeds, with a new version, and is to be made again. A watch
// may be faster than the reply.
func TestW6AWriteThatIsUndoneWithoutEnd(t *testing.T) {
	undo := map[string]func(obj.Object){
		"claimRef": func(object obj.Object) {
			if volume, ok := object.(*corev1.PersistentVolume); ok {
				volume.Spec.ClaimRef = nil
			}
		},
		"claimRef to the first": func(object obj.Object) {
			if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Name == "data" {
				volume.Spec.ClaimRef = nil
			}
		},
		"claimRef.uid": func(object obj.Object) {
			if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
				volume.Spec.ClaimRef.UID = ""
			}
		},
		"bind-completed": func(object obj.Object) { delete(object.GetAnnotations(), phase.BindCompletedAnnotation) },
	}
	for name, undo := range undo {
		t.Run(name, func(t *testing.T) {
			cluster := NewDriven(bindingtest.Volume("pv", "5Gi"), bindingtest.Claim("default", "data", "2Gi"), bindingtest.Claim("default", "small", "1Gi"))
			writes := 0
			var woken []obj.Key
			cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
				if !call.Writes() {
					return do()
				}
				writes++
				call.Sent.SetLabels(map[string]string{"written": strconv.Itoa(writes)})
				undo(call.Sent)
				if err := do(); err != nil {
					return err
				}
				stored := obj.Object(cluster.Volume("pv"))
				if call.Key.Kind == obj.KindClaim {
					stored = cluster.Claim(call.Key.Namespace, call.Key.Name)
				}
				woken = append(woken, cluster.Controller.Observe(stored)...)
				return nil
			})
			controller := cluster.Controller
			queue := append(controller.Observe(cluster.Volume("pv")), controller.Observe(cluster.Claim("default", "data"))...)
			queue = append(queue, controller.Observe(cluster.Claim("default", "small"))...)
			var failed []time.Duration
			for syncs := 0; len(queue) > 0; syncs++ {
				require.Less(t, writes, 500, "W6: the claims are synced again and again, and not after a delay")
				require.Less(t, syncs, 1000, "W6")
				result, err := controller.Sync(t.Context(), queue[0])
				if err != nil {
					require.ErrorContains(t, err, "no end after 64 steps")
					failed = append(failed, result.After)
				}
				queue, woken = append(append(queue[1:], result.Next...), woken...), nil
			}
			assert.NotEmpty(t, failed)
			assert.NotContains(t, failed, time.Duration(0), "W6")
			told := slices.DeleteFunc(cluster.Events(), func(event decision.Event) bool { return event.Reason != decision.EventFailedUpdate })
			assert.NotEmpty(t, told, "N, X10")
			if name == "claimRef to the first" {
				assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "small").Status.Phase, "W1: the next one has it")
			}
		})
	}
}

func TestX7AnInvalidObjectIsNotTriedAgain(t *testing.T) {
	step := stateOf(KnownClaim(MalformedSelector)).Start(DataKey)

	var invalid *obj.InvalidError
	require.ErrorAs(t, step.Err, &invalid)
	assert.Zero(t, step.After, "W6: only a change of it helps")
}

// silent is a client whose answers say nothing.
type silent struct{ binding.Client }

func (silent) GetClaim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return nil, nil
}

func (silent) UpdateVolume(context.Context, *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return nil, nil
}

func TestAnAnswerThatSaysNothingProvesNothing(t *testing.T) {
	cluster, _ := binds()
	controller := &binding.Controller{Client: silent{cluster.Driver.Client}}
	controller.Observe(KnownVolume("a", BoundToClaim))
	_, err := controller.Sync(t.Context(), obj.VolumeKey("a"))
	require.ErrorContains(t, err, "neither an object nor an error", "V3")

	controller = &binding.Controller{Client: silent{cluster.Driver.Client}}
	controller.Observe(KnownVolume("a"))
	controller.Observe(KnownClaim())
	_, err = controller.Sync(t.Context(), DataKey)
	require.ErrorContains(t, err, "neither an object nor an error", "B6")
}
