package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Parsed is an object with what can be large in it, parsed. A Controller parses each version of an object once, before it
// takes its lock: a tenant's object may be a megabyte, and must not keep the claims of others waiting (X9).
type Parsed struct {
	object obj.Object
	claim  *match.Parsed // of a claim; nil if it has nothing that can be large
	pod    *podClaims    // of a pod
}

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
			had, made := cmp.Or(phase.Owned(claim), phase.Lost(claim)), decision.ProvisionedName(claim.UID)
			r.owners[made] = append(r.owners[made], claim)
			if had != "" && had != made {
				r.owners[had] = append(r.owners[had], claim)
			}
		}
	}
	if len(r.Pods) > 0 && r.podsByClaim == nil {
		r.podsByClaim, r.podClaims = podLists{}, map[obj.Key]*podClaims{}
		for _, pod := range slices.SortedFunc(slices.Values(r.Pods), comparePods) {
			claims := claimsOf(pod)
			r.podClaims[obj.KeyOfPod(pod)] = claims
			for _, claim := range claims.keys {
				r.podsByClaim[claim] = append(r.podsByClaim[claim], pod)
			}
		}
	}
	return r
}
