package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// takenEvents are the events that a server takes, each after a second, unless it fails.
type takenEvents struct {
	mu   sync.Mutex
	all  []string
	fail func(*corev1.Event) error
}

func (e *takenEvents) create(action clienttesting.Action) (bool, runtime.Object, error) {
	time.Sleep(time.Second)
	event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		if err := e.fail(event); err != nil {
			return true, nil, err
		}
	}
	if invalid := validation.IsDNS1123Subdomain(event.Name); len(invalid) > 0 {
		return true, nil, apierrors.NewBadRequest(strings.Join(invalid, ", "))
	}
	e.all = append(e.all, fmt.Sprintf("%s/%s %s", event.Namespace, event.InvolvedObject.Name, event.Message))
	return true, event, nil
}

// yet returns the events that were taken.
func (e *takenEvents) yet() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

func (e *takenEvents) recorder(t *testing.T) func(namespace, name, message string) {
	set := fake.NewClientset()
	set.PrependReactor("create", "events", e.create)
	recorder := clientgo.StartRecorder(t.Context(), set)
	return func(namespace, name, message string) {
		recorder.Record(decision.Event{On: obj.ClaimKey(namespace, name), UID: "uid", Type: corev1.EventTypeWarning, Reason: decision.EventFailedBinding, Message: message})
	}
}

// N: a tenant whose claims make more events than can be sent delays nobody else's, and none of them is dropped.
func TestNATenantsEventsAreNotDroppedForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3000
		taken := &takenEvents{}
		record := taken.recorder(t)
		for n := range many {
			record("attacker", fmt.Sprint(n), "nothing fits")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		record("victim", "data", "nothing fits")
		time.Sleep(4 * time.Second)
		assert.Less(t, slices.Index(taken.yet(), "victim/data nothing fits"), 13, "in its turn")
		assert.Contains(t, taken.yet(), "victim/data nothing fits")
		time.Sleep(2 * time.Hour)
		assert.Len(t, taken.yet(), many+1)
	})
}

// N: so it is with volumes. They have no namespace, but that of the claim that they are bound to.
func TestNEventsOnVolumesAreThoseOfTheirClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3000
		taken, set := &takenEvents{}, fake.NewClientset()
		set.PrependReactor("create", "events", taken.create)
		ctx, end := context.WithCancel(t.Context())
		recorder := clientgo.StartRecorder(ctx, set)
		record := func(namespace, name string) {
			recorder.Record(decision.ServerWentBack(bindingtest.Volume(name, "1Gi", func(volume *corev1.PersistentVolume) {
				volume.UID = types.UID(name)
				if namespace != "" {
					volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: "data"}
				}
			})))
		}
		for n := range many {
			record("attacker", fmt.Sprint("of-the-attacker-", n))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		record("victim", "of-the-victim")
		record("", "of-nobody")
		time.Sleep(6 * time.Second)
		end()
		time.Sleep(11 * time.Second)
		var on []string
		for _, event := range taken.yet() {
			on = append(on, strings.Fields(event)[0])
		}
		assert.Contains(t, on, "default/of-the-victim", "in its turn")
		assert.Contains(t, on, "default/of-nobody", "in its turn")
	})
}

// N: an event is sent again where the server may take it later, and the others meanwhile; not where it never will.
func TestNAnEventIsSentAgain(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New(""))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"no answer":                         {errors.New("connection refused"), true},
		"the server is busy":                {apierrors.NewTooManyRequests("", 1), true},
		"the server fails":                  {apierrors.NewInternalError(errors.New("")), true},
		"the namespace is being deleted":    {terminating, false},
		"there is no right to, for a while": {apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("")), true},
		"a quota is used up, for a while":   {apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("exceeded quota")), true},
		"it was stored, the answer lost":    {apierrors.NewAlreadyExists(corev1.Resource("events"), ""), false},
		"the object has as long a name as":  {nil, false},
	} {
		t.Run("N "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures, long := 0, strings.Repeat("a", 200)+"."+strings.Repeat("b", 52)
				taken := &takenEvents{fail: func(event *corev1.Event) error {
					if event.InvolvedObject.Name != long || failures == 3 {
						return nil
					}
					failures++
					return test.err
				}}
				record := taken.recorder(t)
				record("default", long, "first")
				record("default", "other", "then")
				time.Sleep(5 * time.Second)
				assert.Contains(t, taken.yet(), "default/other then")
				time.Sleep(20 * time.Minute)
				assert.Equal(t, test.again || test.err == nil, slices.Contains(taken.yet(), "default/"+long+" first"))
			})
		})
	}
}

// N: events that a quota refuses count among the ten thousand that wait in a namespace, and are sent once there is room for them. Those of others
// go on meanwhile.
func TestNWhatIsRefusedCountsAmongWhatWaits(t *testing.T) {
	const atMost = 10_000
	synctest.Test(t, func(t *testing.T) {
		var refuses atomic.Bool
		refuses.Store(true)
		var mutex sync.Mutex
		tried, taken, set := 0, map[string]bool{}, fake.NewClientset()
		set.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mutex.Lock()
			defer mutex.Unlock()
			event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event)
			tried++
			if refuses.Load() && event.Namespace == "attacker" {
				return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("exceeded quota"))
			}
			taken[event.InvolvedObject.Name+" "+event.Message] = true
			return true, event, nil
		})
		recorder := clientgo.StartRecorder(t.Context(), set)
		record := func(namespace, name, message string) {
			recorder.Record(decision.Event{On: obj.ClaimKey(namespace, name), UID: types.UID(name), Type: corev1.EventTypeWarning, Reason: decision.EventFailedBinding, Message: message})
			synctest.Wait()
		}
		for n := range atMost {
			record("attacker", fmt.Sprint(n), "nothing fits")
		}
		record("attacker", "late", "nothing fits")
		record("attacker", "0", "one is too small")
		record("victim", "data", "nothing fits")
		mutex.Lock()
		assert.Equal(t, atMost+1, tried, "each of those that are kept, and the victim's")
		mutex.Unlock()
		refuses.Store(false)
		time.Sleep(6 * time.Minute)
		mutex.Lock()
		assert.Len(t, taken, atMost+1)
		assert.True(t, taken["data nothing fits"] && taken["0 one is too small"], "the later one counts, also of what was refused")
		mutex.Unlock()
		record("attacker", "late", "nothing fits")
		mutex.Lock()
		defer mutex.Unlock()
		assert.True(t, taken["late nothing fits"], "there is room again")
	})
}

// N: what waits when the controller ends is sent, for the next one does not say it again, as that a claim is Lost; but not for ever.
func TestNWhatWaitsAtTheEndIsSent(t *testing.T) {
	for many, sent := range map[int]int{5: 5, 100: 10} {
		synctest.Test(t, func(t *testing.T) {
			taken, set := &takenEvents{}, fake.NewClientset()
			set.PrependReactor("create", "events", taken.create)
			ctx, end := context.WithCancel(t.Context())
			recorder := clientgo.StartRecorder(ctx, set)
			for n := range many {
				recorder.Record(decision.Event{On: obj.ClaimKey("default", fmt.Sprint(n)), UID: "uid", Type: corev1.EventTypeWarning, Reason: decision.EventClaimLost, Message: "lost"})
			}
			end()
			time.Sleep(time.Minute)
			assert.InDelta(t, sent, len(taken.yet()), 1)
		})
	}
}

// N: of two events of an object with one reason that were not sent yet the later one counts.
func TestNTheLaterEventCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := &takenEvents{}
		record := taken.recorder(t)
		record("default", "first", "is being sent")
		synctest.Wait()
		record("default", "data", "nothing fits")
		record("default", "other", "nothing fits")
		record("default", "data", "one is too small")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"default/first is being sent", "default/data one is too small", "default/other nothing fits"}, taken.yet())
	})
}
