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

// A tenant has very many pods that name the same claims, be it that these wait for a consumer, that they are being deleted, or that their
// volumes are to be recycled; or claims that name one volume. They make, change and delete them all the time. What is done under the lock for
// one of them does not depend on how many there are.
func TestX9ManyObjectsThatNameOne(t *testing.T) {
	few, many := 300, 6000
	if ModeOfRun() == RunShort {
		many = 2000
	}
	const manyClaims = engine.MaxLinks + 1
	again := bindingtest.Claim("tenant", "data-0", "1Gi", ofClass(""), isPending, func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.Unix(1_000_000, 0) })
	for name, churnOf := range map[string]func(n int) func(){
		"X9 W5 C3 pods of the same claims":                                                      func(n int) func() { return churnPodsOfWaiting(n, 16) },
		"X9 W5 C3 pods of the same many claims":                                                 func(n int) func() { return churnPodsOfWaiting(n, manyClaims) },
		"X9 W5 F2 pods of many claims, of which one goes":                                       func(n int) func() { return churnPodsOfGoing(n, manyClaims) },
		"X9 W5 F2 pods with many ephemeral volumes, of which one has the name of one that goes": churnPodsOfEphemeral,
		"X9 W5 R4 pods of what is to be recycled":                                               func(n int) func() { return churnPodsOfReleased(n, 16, nil) },
		"X9 W5 R4 pods of that and very many claims":                                            func(n int) func() { return churnPodsOfReleased(n, manyClaims, nil) },
		"X9 W5 R4 pods of the next claim of its name":                                           func(n int) func() { return churnPodsOfReleased(n, 16, again) },
		"X9 W5 R4 pods of the next claim of its name and of many":                               func(n int) func() { return churnPodsOfReleased(n, manyClaims, again) },
		"X9 R4 pods that are listed before a volume is recycled":                                listPodsOfReleased,
		"X9 W3 claims that name one volume": func(n int) func() {
			disk := bindingtest.Volume("disk", "1Mi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable })
			return churn(stateOf(decision.ProtectionOff, append(claimsNaming("disk", n), disk)...), claimsNaming("disk", n+1)[n])
		},
		"X9 W3 R3 claims that name a Released volume": func(n int) func() {
			disk := lastOfData0("disk", corev1.PersistentVolumeReclaimDelete)
			return churn(stateOf(decision.ProtectionOff, append(claimsNaming("disk", n), disk)...), again)
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

// stateOf returns a state that knows the objects.
func stateOf(protection decision.Protection, objects ...obj.Object) *engine.State {
	state := engine.New(decision.Options{Protection: protection}, 1)
	for i, object := range objects {
		object = object.DeepCopyObject().(obj.Object)
		object.SetUID(types.UID(fmt.Sprint("uid-", i)))
		object.SetResourceVersion(fmt.Sprint(1 + i))
		state.Observe(object)
	}
	return state
}

// churn has an object come, be labelled and go, and syncs all that this wakes. None of the syncs finds anything to do, and their reads fail.
func churn(state *engine.State, object obj.Object) func() {
	version := 1_000_000
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
			syncReading(state, key, func(obj.Key) engine.Reply { return engine.Reply{Err: errors.New("the server is away")} })
		}
	}
}

// syncReading syncs a key, which reads, and writes nothing.
func syncReading(state *engine.State, key obj.Key, read func(obj.Key) engine.Reply) {
	step := state.StartDraft(key)
	for !step.Done {
		if step.Action.Kind != decision.Read {
			panic(step.Action.String())
		}
		step = state.ProceedDraft(key, read(step.Action.Key))
	}
}

func isPending(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

// claimsNaming returns claims that name a volume, which does not fit them.
func claimsNaming(volume string, n int) (claims []obj.Object) {
	for i := range n {
		claims = append(claims, bindingtest.Claim("tenant", fmt.Sprint("web-", i), "1Gi", ofClass(""), isPending, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }))
	}
	return claims
}

// podNaming returns a pod that names claims data-0, data-1 and so on, and has no node.
func podNaming(name string, claims int) *corev1.Pod {
	names := make([]string, claims)
	for i := range names {
		names[i] = fmt.Sprint("data-", i)
	}
	return bindingtest.Pod("tenant", name, "", names...)
}

// churnPodsOfWaiting has pods come and go beside others that name the same claims, which await that one is scheduled.
func churnPodsOfWaiting(n, claims int) func() {
	objects := []obj.Object{ClassOf("local", "csi.example.com", WaitsForFirstConsumer)}
	for i := range claims {
		objects = append(objects, bindingtest.Claim("tenant", fmt.Sprint("data-", i), "1Gi", ofClass("local"), isPending))
	}
	for i := range n {
		objects = append(objects, podNaming(fmt.Sprint("web-", i), claims))
	}
	return churn(stateOf(decision.ProtectionOff, objects...), podNaming("another", claims))
}

// churnPodsOfGoing has them come and go where one of the claims is being deleted, and a pod uses it.
func churnPodsOfGoing(n, claims int) func() {
	going := bindingtest.Claim("tenant", "data-0", "1Gi", ofClass(""), isPending, func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Unix(1_000_000, 0)), []string{reclaim.ClaimProtection}
	})
	objects := []obj.Object{going, bindingtest.Pod("tenant", "user", "node", "data-0")}
	for i := range n {
		objects = append(objects, podNaming(fmt.Sprint("web-", i), claims))
	}
	return churn(stateOf(decision.ProtectionOn, objects...), podNaming("another", claims))
}

// churnPodsOfEphemeral has pods come and go that name a claim which is being deleted. Twenty others have so many volumes each, and to each of them the claim
// is that of a generic ephemeral one, though they do not own it. The last one uses it.
func churnPodsOfEphemeral(n int) func() {
	name := "x" + strings.Repeat("-a", 20)
	going := bindingtest.Claim("tenant", name, "1Gi", ofClass(""), isPending, func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = new(metav1.Unix(1_000_000, 0)), []string{reclaim.ClaimProtection}
	})
	objects := []obj.Object{going, bindingtest.Pod("tenant", "z", "node", name)}
	for i := range 20 {
		pod := bindingtest.Pod("tenant", "x"+strings.Repeat("-a", i), "node")
		pod.UID = types.UID(pod.Name)
		for j := range n {
			of := strings.TrimPrefix(name, pod.Name+"-")
			if j < n-1 {
				of = fmt.Sprint("other-", j)
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: of, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		}
		objects = append(objects, pod)
	}
	return churn(stateOf(decision.ProtectionOn, objects...), bindingtest.Pod("tenant", "another", "", name))
}

// lastOfData0 returns a volume whose claim, data-0, is gone.
func lastOfData0(name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	return bindingtest.Volume(name, "1Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy, v.Status.Phase = policy, corev1.VolumeReleased
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "data-0", UID: "gone"}
	})
}

// churnPodsOfReleased has them come and go where several volumes of one of the claims are Released. If a claim has its name again, the pods have a
// node, and all but one were started after it was made.
func churnPodsOfReleased(n, claims int, again *corev1.PersistentVolumeClaim) func() {
	pod := func(name string, started int64) *corev1.Pod {
		pod := podNaming(name, claims)
		if again != nil {
			pod.Spec.NodeName, pod.Status.StartTime = "node", new(metav1.Unix(started, 0))
		}
		return pod
	}
	objects := []obj.Object{pod("former", 0)}
	if again != nil {
		objects = append(objects, again)
	}
	for i := range 3 {
		objects = append(objects, lastOfData0(fmt.Sprint("disk-", i), corev1.PersistentVolumeReclaimRecycle))
	}
	for i := range n {
		objects = append(objects, pod(fmt.Sprint("web-", i), int64(2_000_000+i)))
	}
	return churn(stateOf(decision.ProtectionOff, objects...), pod("another", 3_000_000))
}

// listPodsOfReleased has the pods of a Released volume's claim listed from the server: no cache has one.
func listPodsOfReleased(n int) func() {
	var listed engine.Reply
	for i := range n {
		listed.Pods = append(listed.Pods, podNaming(fmt.Sprint("web-", i), 16))
	}
	listed = listed.Parsed() // which a Controller does before it takes its lock
	state := stateOf(decision.ProtectionOff, lastOfData0("disk", corev1.PersistentVolumeReclaimRecycle))
	return func() {
		syncReading(state, obj.VolumeKey("disk"), func(key obj.Key) engine.Reply {
			if key == obj.PodsKey("tenant") {
				return listed
			}
			return engine.Reply{Err: NotFoundError(key)}
		})
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
