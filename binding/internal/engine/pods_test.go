package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// podNaming returns a pod that names the claims.
func podNaming(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

// X9: a pod may name a claim by a text of a megabyte, which is none's.
func TestX9APodThatNamesWhatCannotExist(t *testing.T) {
	state := New(decision.Options{}, 1)
	assert.Equal(t, []obj.Key{obj.ClaimKey("default", "data")}, state.Observe(podNaming("web", strings.Repeat("n", 300), "data")))
	assert.Len(t, state.podsByClaim, 1)
}

// podVersions returns pods that differ in what a pod may differ in.
func podVersions() (pods []*corev1.Pod) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	pods = []*corev1.Pod{podNaming("web", "web-data")}
	pods[0].UID = "uid-of-pod"
	for _, edit := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Labels = map[string]string{"seen": "yes"} },
		func(p *corev1.Pod) { p.UID = "another" },
		func(p *corev1.Pod) { p.Spec.NodeName = "node" },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		func(p *corev1.Pod) { p.DeletionTimestamp = &now },
		func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64) },
		func(p *corev1.Pod) { p.Status.StartTime = &now },
		func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{}} },
		func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		},
	} {
		for _, pod := range slices.Clone(pods) {
			edited := pod.DeepCopy()
			edit(edited)
			pods = append(pods, edited)
		}
	}
	return pods
}

// decidedOn returns all that any decision makes of a pod.
func decidedOn(pod *corev1.Pod) string {
	key := obj.ClaimKey("default", "web-data")
	claim := func(created time.Time) *corev1.PersistentVolumeClaim {
		owners := []metav1.OwnerReference{{UID: "uid-of-pod", Controller: new(true)}}
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, CreationTimestamp: metav1.NewTime(created), OwnerReferences: owners,
		}}
	}
	early, late := claim(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)), claim(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	decided := fmt.Sprint(pod.Spec.NodeName == "", reclaim.Ended(pod), reclaim.UsesClaim(pod, early))
	for _, again := range []*corev1.PersistentVolumeClaim{nil, early, late} {
		decided += fmt.Sprint(len(reclaim.BlockRecycling([]*corev1.Pod{pod}, key.Namespace, key.Name, again)))
	}
	return decided
}

// W5: what a decision makes of two versions of a pod is the same where the second one wakes nobody.
func TestW5WhatAPodIsLookedAtFor(t *testing.T) {
	t.Run("W5 C3 F2 R4", func(t *testing.T) {
		decided, pods := map[podFacts]string{}, podVersions()
		for _, pod := range pods {
			facts, now := factsOf(pod), decidedOn(pod)
			if before, known := decided[facts]; known {
				require.Equal(t, before, now, "%v", pod)
			}
			decided[facts] = now
		}
		assert.Less(t, len(decided), len(pods), "a label says nothing")
	})
}

// The lists of pods hold what a scan of all pods finds, whatever came, changed and went, and a look finds the first ones.
func TestX9TheListsOfPodsAgainstAScan(t *testing.T) {
	t.Run("X9 C3 R4", func(t *testing.T) {
		data, more := obj.ClaimKey("default", "data"), []string{"data"}
		for i := range MaxLinks {
			more = append(more, fmt.Sprint("more-", i))
		}
		seeds := uint64(30)
		if testing.Short() {
			seeds = 5
		}
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 9))
			state, known := New(decision.Options{}, 1), map[string]*corev1.Pod{}
			for version := range 200 {
				name := fmt.Sprint("pod-", random.IntN(40))
				if old := known[name]; old != nil && random.IntN(4) == 0 {
					state.ObserveDeleted(old)
					delete(known, name)
				} else {
					pod := podNaming(name, more[:1+random.IntN(2)*MaxLinks]...)
					pod.UID, pod.ResourceVersion = types.UID(fmt.Sprint(version)), fmt.Sprint(1+version)
					if old != nil {
						pod.UID = old.UID
					}
					if random.IntN(3) > 0 {
						pod.Spec.NodeName = "node"
					}
					if random.IntN(4) == 0 {
						pod.Status.Phase = corev1.PodFailed
					}
					if random.IntN(4) == 0 {
						pod.DeletionTimestamp = new(metav1.Unix(3_000, 0))
					}
					if random.IntN(4) > 0 {
						pod.Status.StartTime = new(metav1.Unix(1_000+100*random.Int64N(7), 0)) // of again five minutes later
					}
					state.Observe(pod)
					known[name] = pod
				}
				all := slices.Collect(maps.Values(known))
				users := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
				require.ElementsMatch(t, decision.UsersOf(all, users, len(all)), state.usersOf(users, len(all)), "seed %d", seed)
				wantNames, wantCount := decision.Unscheduled(all, 5)
				names, count := state.unscheduled(data, 5)
				require.Equal(t, wantCount, count, "seed %d", seed)
				require.Equal(t, wantNames, names, "seed %d", seed)
				stores := []*store{&state.store}
				if version%20 == 0 { // and a list of all of them
					stores = append(stores, &store{podsByClaim: Reply{Pods: all}.Parsed().podsByClaim})
				}
				for _, again := range []*corev1.PersistentVolumeClaim{nil, claimAgain()} {
					wantNames, wantCount = decision.RecyclingBlockedBy(all, again, 5)
					for _, s := range stores {
						names, count = s.blocking(data, again, 5)
						require.Equal(t, wantCount, count, "seed %d", seed)
						require.Equal(t, wantNames, names, "seed %d", seed)
					}
				}
			}
			for _, pod := range known {
				state.ObserveDeleted(pod)
			}
			require.Empty(t, state.podsByClaim, "seed %d", seed)
			require.Empty(t, state.largePods, "seed %d", seed)
			require.Empty(t, state.podClaims, "seed %d", seed)
		}
	})
}

// A pod that has a claim as a generic ephemeral volume uses it only if it owns that, whatever else it names, and whoever else names it.
func TestF2TheUsersOfAClaimAgainstAScan(t *testing.T) {
	t.Run("F2 X9", func(t *testing.T) {
		used := 0
		for seed := range uint64(300) {
			random := rand.New(rand.NewPCG(seed, 2))
			state := New(decision.Options{}, 1)
			var pods []*corev1.Pod
			for _, name := range []string{"a", "a-a", "a-a-a"} { // each has a-a-a-a by a volume of that suffix
				pod := podNaming(name, []string{"other", "a-a-a-a"}[random.IntN(2)])
				pod.UID, pod.ResourceVersion = types.UID("uid-"+name), "1"
				if random.IntN(3) > 0 {
					suffix := []string{strings.TrimPrefix("a-a-a-a", name+"-"), "b"}[random.IntN(2)]
					pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: suffix, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
				}
				if random.IntN(3) > 0 {
					pod.Spec.NodeName = "node"
				}
				if random.IntN(3) == 0 {
					pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Unix(3_000, 0)), new(random.Int64N(2))
				}
				pods = append(pods, pod)
				state.Observe(pod)
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-a-a-a"}}
			claim.OwnerReferences = []metav1.OwnerReference{{UID: pods[random.IntN(3)].UID, Controller: new(true)}}
			want, listed := decision.UsersOf(pods, claim, 10), Reply{Pods: pods}.Parsed()
			require.ElementsMatch(t, want, state.usersOf(claim, 10), "seed %d", seed)
			require.ElementsMatch(t, want, (&store{podsByClaim: listed.podsByClaim, podClaims: listed.podClaims}).usersOf(claim, 10), "seed %d", seed)
			require.Len(t, state.usersOf(claim, 1), min(1, len(want)), "seed %d", seed)
			used += len(want)
		}
		assert.Positive(t, used)
	})
}

// claimAgain returns a claim that has the name of one that is gone.
func claimAgain() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "again", CreationTimestamp: metav1.Unix(1_000, 0)}}
}

// Of more pods than are looked at all are counted that block recycling, and ten are named.
func TestX9MorePodsThanAreLookedAt(t *testing.T) {
	t.Run("X9 R4", func(t *testing.T) {
		state, data := New(decision.Options{}, 1), obj.ClaimKey("default", "data")
		observe := func(name string, started int64) {
			pod := podNaming(name, "data")
			pod.Spec.NodeName, pod.Status.StartTime = "node", new(metav1.Unix(started, 0))
			state.Observe(pod)
		}
		for i := range 2 * maxPods {
			observe(fmt.Sprint("after-", 1000+i), 2_000)
			observe(fmt.Sprint("before-", 1000+i), 900)
			state.Observe(podNaming(fmt.Sprint("unscheduled-", 1000+i), "data"))
		}
		names, count := state.blocking(data, claimAgain(), 2)
		assert.Equal(t, 2*maxPods, count)
		assert.Equal(t, []string{"before-1000", "before-1001"}, names)
		names, count = state.blocking(data, nil, 2)
		assert.Equal(t, 6*maxPods, count)
		assert.Equal(t, []string{"before-1000", "before-1001"}, names, "they were started first")
	})
}

// More pods of a namespace name very many claims than are looked at: what the cache leaves out, the list from the server has.
func TestX9APodThatIsNotLookedAtIsListed(t *testing.T) {
	var pods []*corev1.Pod
	for i := range maxPods + 1 {
		claims := make([]string, 0, MaxLinks+1)
		for j := range MaxLinks + 1 {
			claims = append(claims, fmt.Sprint("other-", j))
		}
		pods = append(pods, podNaming(fmt.Sprint("web-", 1000+i), claims...))
		pods[i].Spec.NodeName = "node"
	}
	last := pods[maxPods]
	last.Spec.Volumes[MaxLinks].PersistentVolumeClaim.ClaimName = "data"

	view := func(t *testing.T, live map[obj.Key]Reply) *taskView {
		state := New(decision.Options{}, 1)
		for _, pod := range pods {
			state.Observe(pod)
		}
		return &taskView{state, &task{live: live}}
	}
	listed := map[obj.Key]Reply{obj.PodsKey("default"): Reply{Pods: pods}.Parsed()}
	t.Run("X9 F2", func(t *testing.T) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
		users, source := view(t, nil).UsersOf(claim, 10)
		assert.Empty(t, users)
		assert.Equal(t, decision.FromCache, source, "which proves nothing")
		users, source = view(t, listed).UsersOf(claim, 10)
		assert.Equal(t, []string{last.Name}, users)
		assert.Equal(t, decision.FromLiveRead, source)
	})
	t.Run("X9 R4", func(t *testing.T) {
		_, count, source := view(t, nil).RecyclingBlockedBy("default", "data", nil, 10)
		assert.Zero(t, count)
		assert.Equal(t, decision.FromCache, source, "which proves nothing")
		names, count, source := view(t, listed).RecyclingBlockedBy("default", "data", nil, 10)
		assert.Equal(t, []string{last.Name}, names)
		assert.Equal(t, 1, count)
		assert.Equal(t, decision.FromLiveRead, source)
	})
}
