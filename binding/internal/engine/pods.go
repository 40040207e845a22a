package engine

import (
	"cmp"
	"crypto/sha256"
	"io"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// podClaims are a pod and the claims that it names.
type podClaims struct {
	pod  *corev1.Pod
	keys []obj.Key
	// set has the keys, if they are so many that the pod is kept with those of its namespace and not with each claim.
	set    map[obj.Key]struct{}
	byName map[obj.Key]struct{} // those that a volume names itself, where others are generic ephemeral ones; nil if none is
	facts  podFacts
}

// MaxLinks is how many claims a pod may name to be kept with each of them. It is also how many are looked at while the lock is
// held once.
const MaxLinks = 64

// maxPods is how many pods are looked at for one claim where they are in another order than is needed, or may not name it: those of a namespace
// that name very many claims. It is for messages, and where a live list has the last word.
const maxPods = 256

// podFacts has all of a pod that any decision depends on: whether it awaits a node (C3), uses a claim (F2, reclaim.UsesClaim), or
// blocks recycling (R4, reclaim.BlockRecycling). A version in which nothing of that is another wakes nobody (W5): whoever may
// label pods would have all their claims looked at each time.
type podFacts struct {
	uid       types.UID
	scheduled bool
	ended     bool
	deleting  bool
	grace     int64
	started   time.Time
	volumes   [sha256.Size]byte // the claims that the volumes name, and how; not compared one by one, for they may be very many
}

// claimsOf returns the claims that the pod names, but for names that none can have, in time linear in its size.
func claimsOf(pod *corev1.Pod) *podClaims {
	claims := &podClaims{pod: pod, facts: factsOf(pod)}
	for _, name := range reclaim.ClaimNames(pod) {
		if key := obj.ClaimKey(pod.Namespace, name); !key.IsNobodys() {
			claims.keys = append(claims.keys, key)
		}
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Ephemeral != nil }) {
		claims.byName = map[obj.Key]struct{}{}
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				claims.byName[obj.ClaimKey(pod.Namespace, volume.PersistentVolumeClaim.ClaimName)] = struct{}{}
			}
		}
	}
	if len(claims.keys) > MaxLinks {
		claims.set = make(map[obj.Key]struct{}, len(claims.keys))
		for _, key := range claims.keys {
			claims.set[key] = struct{}{}
		}
	}
	return claims
}

func factsOf(pod *corev1.Pod) podFacts {
	facts := podFacts{uid: pod.UID, scheduled: pod.Spec.NodeName != "", ended: reclaim.Ended(pod), deleting: pod.DeletionTimestamp != nil, grace: -1}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		facts.grace = *grace
	}
	if started := pod.Status.StartTime; started != nil {
		facts.started = started.UTC()
	}
	digest := sha256.New() // its writes have no error
	for i := range pod.Spec.Volumes {
		if name := reclaim.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			how := "\x00"
			if pod.Spec.Volumes[i].Ephemeral != nil {
				how = "\x01"
			}
			_, _ = io.WriteString(digest, name+how)
		}
	}
	digest.Sum(facts.volumes[:0])
	return facts
}

// relinkPod brings up to date which pods name a claim, and returns the claims that either version of the pod names, if any decision
// may depend on the difference. nil is no version.
func (s *store) relinkPod(key obj.Key, claims *podClaims) (named []obj.Key) {
	old := s.podClaims[key]
	delete(s.podClaims, key)
	if claims != nil {
		zeromap.Put(&s.podClaims, key, claims)
	}
	if old != nil && claims != nil && old.facts == claims.facts {
		s.eachPodList(claims, func(pods *podLists, of obj.Key) { pods.add(of, claims.pod) }) // in the old one's place
		return nil
	}
	if old != nil {
		s.eachPodList(old, func(pods *podLists, of obj.Key) { pods.remove(of, old.pod) })
		named = old.keys
	}
	if claims == nil {
		return named
	}
	s.eachPodList(claims, func(pods *podLists, of obj.Key) { pods.add(of, claims.pod) })
	if len(named) == 0 || sameKeys(named, claims.keys) {
		return claims.keys
	}
	return slices.Concat(named, claims.keys)
}

// eachPodList visits the lists that a pod is in: that of each claim that it names, or that of its namespace.
func (s *store) eachPodList(claims *podClaims, visit func(pods *podLists, of obj.Key)) {
	if claims.set != nil {
		visit(&s.largePods, obj.PodsKey(claims.pod.Namespace))
		return
	}
	for _, claim := range claims.keys {
		visit(&s.podsByClaim, claim)
	}
}

// sameKeys reports whether the keys of two versions of a pod are the same slice, or equal if they are few.
func sameKeys(a, b []obj.Key) bool { return len(a) <= MaxLinks && slices.Equal(a, b) }

// usersOf returns the names of as many pods as are asked for that use a claim (reclaim.UsesClaim), without a look at all that they name. Of the pods
// of very many claims it looks at the first maxPods alone.
func (s *store) usersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string) {
	key := obj.KeyOf(claim)
	for _, pods := range [][]*corev1.Pod{s.podsByClaim[key], s.largeOf(key, s.largePods[obj.PodsKey(key.Namespace)])} {
		for _, pod := range pods {
			if len(names) == atMost || pod.Spec.NodeName == "" { // nor has any that follows a node
				break
			}
			if s.isNamedIn(pod, key) || reclaim.OwnsEphemeral(pod, claim) {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

// isNamedIn reports whether a volume of a pod, which is in a list of the claim, names it itself.
func (s *store) isNamedIn(pod *corev1.Pod, claim obj.Key) bool {
	claims := s.podClaims[obj.KeyOfPod(pod)]
	_, byName := claims.byName[claim]
	return claims.byName == nil || byName
}

// largeOf returns those of the first maxPods of the pods of very many claims that name this one.
func (s *store) largeOf(claim obj.Key, large []*corev1.Pod) (pods []*corev1.Pod) {
	for _, pod := range large[:min(len(large), maxPods)] {
		if s.namesToo(pod, claim) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// unscheduled returns the names of the first pods, in order, that name a claim and are still to be scheduled, and how many there are.
func (s *store) unscheduled(claim obj.Key, atMost int) (names []string, count int) {
	return s.firstOf(claim, atMost, func(pods []*corev1.Pod) []*corev1.Pod { return standing(podUnscheduled, pods) })
}

// blocking returns the names of the first pods, in order, that name a claim and keep its volume from being recycled, and how many there are.
// Those with a node are in the order of their start: of more than maxPods it may name others than the first ones.
func (s *store) blocking(claim obj.Key, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int) {
	names, count = s.firstOf(claim, maxPods, func(pods []*corev1.Pod) []*corev1.Pod {
		pods = standing(podScheduled, pods)
		return pods[:sort.Search(len(pods), func(i int) bool { return !reclaim.BlocksRecycling(pods[i], again) })]
	})
	if again != nil { // whose those without a node are
		return names[:min(len(names), atMost)], count
	}
	unscheduled, more := s.unscheduled(claim, atMost)
	names = append(names, unscheduled...)
	slices.Sort(names)
	return names[:min(len(names), atMost)], count + more
}

// firstOf returns the names of the first pods, in order, that name a claim and are in one part of each list, and how many there are. However
// many that are, it looks at no more than it returns, and at the first of the pods of very many claims: in a namespace with more than
// maxPods of these, those that are not looked at do not count.
func (s *store) firstOf(claim obj.Key, atMost int, partOf func(list []*corev1.Pod) []*corev1.Pod) (names []string, count int) {
	pods := partOf(s.podsByClaim[claim])
	large := s.largeOf(claim, partOf(s.largePods[obj.PodsKey(claim.Namespace)]))
	count = len(pods) + len(large)
	for _, pod := range append(slices.Clip(pods[:min(len(pods), atMost)]), large...) {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names[:min(len(names), atMost)], count
}

// namesToo reports whether a pod of very many claims names this one.
func (s *store) namesToo(pod *corev1.Pod, claim obj.Key) bool {
	_, names := s.podClaims[obj.KeyOfPod(pod)].set[claim]
	return names
}

// podLists has lists of pods of one namespace, each in the order of comparePods. The zero value is ready to use.
type podLists map[obj.Key][]*corev1.Pod

// add adds a pod to a list, or puts it in the place of one that compares equal.
func (l *podLists) add(to obj.Key, pod *corev1.Pod) {
	pods := (*l)[to]
	at, found := slices.BinarySearchFunc(pods, pod, comparePods)
	if found {
		pods[at] = pod
		return
	}
	zeromap.Put(l, to, slices.Insert(pods, at, pod))
}

// remove removes a pod, or the one that compares equal, from a list.
func (l podLists) remove(from obj.Key, pod *corev1.Pod) {
	pods := l[from]
	at, found := slices.BinarySearchFunc(pods, pod, comparePods)
	switch {
	case found && len(pods) == 1:
		delete(l, from)
	case found:
		l[from] = slices.Delete(pods, at, at+1)
	}
}

// comparePods compares pods by what decisions look for, and by name.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(standingOf(a), standingOf(b)), startOf(a).Compare(startOf(b)), cmp.Compare(a.Name, b.Name))
}

// startOf returns when a pod was started that has a node; zero if that is not known.
func startOf(pod *corev1.Pod) time.Time {
	if started := pod.Status.StartTime; started != nil && pod.Spec.NodeName != "" {
		return started.Time
	}
	return time.Time{}
}

// podStanding is how far a pod is, in the order in which a list has them.
type podStanding int

const (
	podScheduled   podStanding = iota // it uses its claims (F2, R4); those that were started first come first
	podEnded                          // it has ended on its node, and uses them still (F2)
	podUnscheduled                    // its claims await that it is scheduled (C3), and the volumes of those of before that it goes (R4)
	podForgotten                      // it has finished without a node
)

func standingOf(pod *corev1.Pod) podStanding {
	switch {
	case pod.Spec.NodeName != "" && !reclaim.Ended(pod):
		return podScheduled
	case pod.Spec.NodeName != "":
		return podEnded
	case !reclaim.Finished(pod):
		return podUnscheduled
	}
	return podForgotten
}

// standing returns the part of a list that has the pods which are so far.
func standing(at podStanding, pods []*corev1.Pod) []*corev1.Pod {
	before := func(other podStanding) int {
		return sort.Search(len(pods), func(i int) bool { return standingOf(pods[i]) >= other })
	}
	return pods[before(at):before(at+1)]
}
