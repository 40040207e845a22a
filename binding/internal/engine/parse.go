package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// Parsed is an object with what can be large in it, parsed. A Controller parses each version of an object once, before it
// takes its lock: a tenant's object may be a megabyte, and must not keep the claims of others waiting (X9).
type Parsed struct {
	object obj.Object
	claim  *match.Parsed // of a claim; nil if it has nothing that can be large
	pod    *podClaims    // of a pod
}

// podClaims are the claims that a pod names.
type podClaims struct {
	keys []obj.Key
	// set has the keys, if they are so many that the pod is kept with those of its namespace and not with each claim.
	set map[obj.Key]struct{}
}

// MaxLinks is how many claims a pod may name to be kept with each of them. It is also how many are looked at while the lock is
// held once.
const MaxLinks = 64

// Parse parses an object for ObserveParsed, in time linear in its size.
func Parse(object obj.Object) Parsed {
	p := Parsed{object: object}
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		p.claim = match.Parse(object)
	case *corev1.Pod:
		p.pod = claimsOf(object)
	}
	return p
}

// Checked returns the reply to an action, or an error in its place where it is not what the API server replies. That proves
// nothing: a read has failed, and what became of a write is not known (V3, B6).
func (r Reply) Checked(action decision.Action) Reply {
	if r.Object != nil {
		if err := obj.CheckReply(action.Target(), r.Object); err != nil {
			return Reply{Err: err}
		}
	}
	if err := cmp.Or(checkItems(action.Key, r.Claims), checkItems(action.Key, r.Pods), checkItems(action.Key, r.Attachments)); err != nil {
		return Reply{Err: err}
	}
	return r
}

func checkItems[O obj.Object](key obj.Key, items []O) error {
	for _, item := range items {
		if err := obj.CheckItem(key, item); err != nil {
			return err
		}
	}
	return nil
}

// Parsed returns the reply with its object, claims or pods parsed, for Proceed. It does nothing the second time.
func (r Reply) Parsed() Reply {
	if r.Object != nil && r.parsed.object != r.Object {
		r.parsed = Parse(r.Object)
	}
	if len(r.Claims) > 0 && r.owners == nil {
		r.owners = map[string][]*corev1.PersistentVolumeClaim{}
		for _, claim := range r.Claims {
			if volume := phase.Owned(claim); volume != "" {
				r.owners[volume] = append(r.owners[volume], claim)
			}
		}
	}
	if len(r.Pods) > 0 && r.podsByClaim == nil {
		r.podsByClaim = map[obj.Key][]*corev1.Pod{}
		for _, pod := range r.Pods {
			for _, claim := range claimsOf(pod).keys {
				r.podsByClaim[claim] = append(r.podsByClaim[claim], pod)
			}
		}
	}
	return r
}

func claimsOf(pod *corev1.Pod) *podClaims {
	claims := &podClaims{}
	for _, name := range reclaim.ClaimNames(pod) {
		claims.keys = append(claims.keys, obj.ClaimKey(pod.Namespace, name))
	}
	if len(claims.keys) > MaxLinks {
		claims.set = make(map[obj.Key]struct{}, len(claims.keys))
		for _, key := range claims.keys {
			claims.set[key] = struct{}{}
		}
	}
	return claims
}

// relinkPod brings up to date which pods name a claim, and returns the claims that either version of the pod names. nil is no
// version.
func (s *store) relinkPod(key obj.Key, claims *podClaims) (named []obj.Key) {
	if old := s.podClaims[key]; old != nil {
		named = old.keys
		if old.set == nil {
			for _, claim := range old.keys {
				s.podsByClaim.remove(key, claim)
			}
		}
		s.largePods.remove(key, obj.PodsKey(key.Namespace))
		delete(s.podClaims, key)
	}
	if claims == nil {
		return named
	}
	zeromap.Put(&s.podClaims, key, claims)
	if claims.set != nil {
		s.largePods.add(key, obj.PodsKey(key.Namespace))
	} else {
		for _, claim := range claims.keys {
			s.podsByClaim.add(key, claim)
		}
	}
	if len(named) == 0 || sameKeys(named, claims.keys) {
		return claims.keys
	}
	return slices.Concat(named, claims.keys)
}

// sameKeys reports whether the keys of two versions of a pod are the same slice, or equal if they are few.
func sameKeys(a, b []obj.Key) bool { return len(a) <= MaxLinks && slices.Equal(a, b) }

// podsOf returns the pods that name a claim, in order.
func (s *store) podsOf(claim obj.Key) []obj.Key {
	pods := s.podsByClaim.of(claim)
	for key := range s.largePods[obj.PodsKey(claim.Namespace)] {
		if _, names := s.podClaims[key].set[claim]; names {
			pods = append(pods, key)
		}
	}
	slices.SortFunc(pods, obj.CompareKeys)
	return pods
}
