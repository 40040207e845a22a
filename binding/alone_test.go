package binding_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// A tenant makes claims that name the volume of another, whose deleter fails, changes them and deletes them, all the time.
func TestW6ClaimsOfOthersDoNotEndABackoff(t *testing.T) {
	calls := func(t *testing.T, named string) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			deletes := Deletes(func(context.Context, hooks.ReclaimRequest) error {
				calls++
				return errors.New("the disk is busy")
			})
			server, controller := hookedController(t, hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": deletes}})
			crowd := newCrowd(t, 4, controller, server)
			crowd.create(t, bindingtest.Volume("disk", "1Gi", func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "other", Name: "gone", UID: "gone"}
			}))
			observe := func(object obj.Object, err error) {
				require.NoError(t, err)
				crowd.add(crowd.Observe(object)...)
			}
			for n := range 100 {
				claim := obj.ClaimKey("tenant", fmt.Sprint(n))
				crowd.create(t, bindingtest.Claim(claim.Namespace, claim.Name, "1Gi", ofClass("none"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = named }))
				time.Sleep(100 * time.Millisecond)
				stored := server.Claim(claim.Namespace, claim.Name).DeepCopy()
				stored.Labels = map[string]string{"changed": "yes"}
				changed, err := server.UpdateClaim(t.Context(), stored)
				observe(changed, err)
				time.Sleep(100 * time.Millisecond)
				crowd.add(crowd.ObserveDeleted(changed)...)
			}
		})
		return calls
	}
	t.Run("W6 W3", func(t *testing.T) {
		alone := calls(t, "")
		require.NotZero(t, alone)
		assert.Equal(t, alone, calls(t, "disk"), "as often as without them")
	})
}

// A tenant makes and deletes claims of the name of one that is gone, and pods that use it, all the time, also while a hook that fails is at work on
// its volume.
func TestW6TheNextClaimsAndTheirPodsDoNotEndABackoff(t *testing.T) {
	calls := func(t *testing.T, policy corev1.PersistentVolumeReclaimPolicy, key obj.Key, object obj.Object) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			fails := func(ctx context.Context, _ hooks.ReclaimRequest) error {
				calls++
				select {
				case <-ctx.Done():
				case <-time.After(150 * time.Millisecond):
				}
				return errors.New("the disk is busy")
			}
			server, controller := hookedController(t, hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(fails)}, Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(fails)}})
			crowd := newCrowd(t, 4, controller, server)
			crowd.create(t, bindingtest.Volume("disk", "1Gi", func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = policy
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "data", UID: "gone"}
			}))
			for range 300 {
				time.Sleep(100 * time.Millisecond)
				created, err := server.Create(t.Context(), object)
				require.NoError(t, err)
				crowd.add(crowd.Observe(created)...)
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, server.Delete(t.Context(), key, metav1.DeleteOptions{}))
				if going := server.Claim(key.Namespace, key.Name); going != nil { // which is protected
					crowd.add(crowd.Observe(going)...)
					synctest.Wait()
				}
				crowd.add(crowd.ObserveDeleted(created)...)
			}
		})
		return calls
	}
	const inAMinute = 8 // of a hook that takes 0.15 s, and has delays of 0.5 s, 1 s, ...
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		t.Run("W6 "+string(policy), func(t *testing.T) {
			assert.LessOrEqual(t, calls(t, policy, obj.ClaimKey("tenant", "data"), bindingtest.Claim("tenant", "data", "1Gi", ofClass("none"))), inAMinute)
			assert.LessOrEqual(t, calls(t, policy, obj.Key{Kind: obj.KindPod, Namespace: "tenant", Name: "web"}, bindingtest.Pod("tenant", "web", "", "data")), inAMinute)
		})
	}
}

// A tenant has very many pods that name the same claims of a class that waits for a consumer, or claims that name one volume, and makes,
// changes and deletes them all the time. What is done under the lock for one of them does not depend on how many there are.
func TestX9ManyObjectsThatNameOne(t *testing.T) {
	few, many := 300, 6000
	if ModeOfRun() == RunShort {
		many = 2000
	}
	stateOf := func(objects ...obj.Object) *engine.State {
		state := engine.New(decision.Options{Protection: decision.ProtectionOff}, 1)
		for i, object := range objects {
			object.SetUID(types.UID(fmt.Sprint("uid-", i)))
			object.SetResourceVersion(fmt.Sprint(1 + i))
			state.Observe(object)
		}
		return state
	}
	version := 1_000_000
	// churn has an object come, be labelled and go, and syncs all that this wakes. None of the syncs finds anything to do.
	churn := func(state *engine.State, object obj.Object) func() {
		return func() {
			keys := map[obj.Key]struct{}{}
			object = object.DeepCopyObject().(obj.Object)
			object.SetUID(types.UID(fmt.Sprint("uid-", version)))
			for range 2 {
				version++
				object = object.DeepCopyObject().(obj.Object)
				object.SetResourceVersion(fmt.Sprint(version))
				object.SetLabels(map[string]string{"version": fmt.Sprint(version)})
				for _, key := range state.Observe(object) {
					keys[key] = struct{}{}
				}
			}
			for _, key := range state.ObserveDeleted(object) {
				keys[key] = struct{}{}
			}
			for key := range keys {
				if step := state.StartDraft(key); !step.Done {
					panic(step.Action.String())
				}
			}
		}
	}
	pending := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }
	podsOfTheSame := func(claims int) func(n int) func() {
		names := make([]string, claims)
		for i := range names {
			names[i] = fmt.Sprint("data-", i)
		}
		return func(n int) func() {
			objects := []obj.Object{ClassOf("local", "csi.example.com", WaitsForFirstConsumer)}
			for _, name := range names {
				objects = append(objects, bindingtest.Claim("tenant", name, "1Gi", ofClass("local"), pending))
			}
			for i := range n {
				objects = append(objects, bindingtest.Pod("tenant", fmt.Sprint("web-", i), "", names...))
			}
			return churn(stateOf(objects...), bindingtest.Pod("tenant", "another", "", names...))
		}
	}
	for name, churnOf := range map[string]func(n int) func(){
		"X9 W5 C3 pods of the same claims":      podsOfTheSame(16),
		"X9 W5 C3 pods of the same many claims": podsOfTheSame(engine.MaxLinks + 1),
		"X9 W3 claims that name one volume": func(n int) func() {
			objects := []obj.Object{bindingtest.Volume("disk", "1Mi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable })}
			naming := func(name string) obj.Object {
				return bindingtest.Claim("tenant", name, "1Gi", ofClass(""), pending, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "disk" })
			}
			for i := range n {
				objects = append(objects, naming(fmt.Sprint("data-", i)))
			}
			return churn(stateOf(objects...), naming("another"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := map[int]func(){few: churnOf(few), many: churnOf(many)}
			compared := &comparison{sizes: [2]int{few, many}, least: 10 * time.Microsecond, measure: func(n int) time.Duration { return best(calls[n]) }}
			compared.check(t, "what comes, changes and goes", besideLimit)
			t.Logf("%v beside %d, and %v beside %d", compared.took[0], few, compared.took[1], many)
		})
		if testing.Short() {
			break // any one
		}
	}
}

// A tenant has claims that wait, fit any volume, and carry a long announcement (R8), which holds them up for an hour. Each volume that comes asks for them
// all: what that costs does not depend on how long the announcements are.
func TestX9ClaimsThatCarryALongAnnouncement(t *testing.T) {
	const short, long, claims = 64, 3800, 300
	syncOf := func(length int) func() {
		state := engine.New(decision.Options{Protection: decision.ProtectionOff}, 1)
		state.SetTime(time.Unix(1_700_000_000, 0))
		text := `{"by":"x","token":1,"seconds":3600,"x":[`
		text += strings.Repeat("1,", (length-len(text)-2)/2) + "1]}"
		for i := range claims {
			claim := bindingtest.Claim("tenant", fmt.Sprint("data-", i), "1Gi", ofClass(""), ClaimNote(reclaim.AnnouncementAnnotation, text), ClaimFinalizers(ProvisioningFinalizer), ClaimNote(Provisioner, "theirs"))
			claim.UID, claim.ResourceVersion, claim.Status.Phase = types.UID(claim.Name), fmt.Sprint(1+i), corev1.ClaimPending
			state.Observe(claim)
		}
		disk := bindingtest.Volume("disk", "1Gi", func(v *corev1.PersistentVolume) {
			v.UID, v.ResourceVersion, v.Status.Phase = "disk", "1000", corev1.VolumeAvailable
		})
		state.Observe(disk)
		return func() {
			step := state.StartDraft(obj.VolumeKey("disk"))
			if !step.Done || len(step.Next) > 0 {
				panic("it is offered to a claim that takes none")
			}
		}
	}
	calls := map[int]func(){short: syncOf(short), long: syncOf(long)}
	compared := &comparison{sizes: [2]int{short, long}, least: 10 * time.Microsecond, measure: func(n int) time.Duration { return best(calls[n]) }}
	compared.check(t, "a sync of a volume", besideLimit)
	t.Logf("%v where they are short, and %v where they are long", compared.took[0], compared.took[1])
}
