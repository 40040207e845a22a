package decision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// Snapshot is a View on plain lists, in any order. What it lacks is NotInCache, unless LiveReads says otherwise.
// A look-up takes time in the length of a list; a Controller has indexes in their place.
type Snapshot struct {
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	Classes []*storagev1.StorageClass
	Pods    []*corev1.Pod
	// Attachments may be of any volume.
	Attachments []*storagev1.VolumeAttachment
	// LiveReads are the keys that were read from the server: what the lists have of them was read live,
	// and what they lack of them does not exist.
	LiveReads []obj.Key
	// Answers are the outcomes of earlier actions, the oldest first.
	Answers []Answer
}

var _ View = Snapshot{}

// Volume looks up a volume by name.
func (s Snapshot) Volume(name string) (*corev1.PersistentVolume, Source) {
	for _, volume := range s.Volumes {
		if volume.Name == name {
			return volume, s.source(obj.VolumeKey(name), FromLiveRead, FromCache)
		}
	}
	return nil, s.source(obj.VolumeKey(name), AbsentInLiveRead, NotInCache)
}

// Claim looks up a claim.
func (s Snapshot) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Source) {
	key := obj.ClaimKey(namespace, name)
	for _, claim := range s.Claims {
		if obj.KeyOf(claim) == key {
			return claim, s.source(key, FromLiveRead, FromCache)
		}
	}
	return nil, s.source(key, AbsentInLiveRead, NotInCache)
}

func (s Snapshot) source(key obj.Key, live, otherwise Source) Source {
	if slices.Contains(s.LiveReads, key) {
		return live
	}
	return otherwise
}

// Class looks up a class.
func (s Snapshot) Class(name string) *storagev1.StorageClass {
	for _, class := range s.Classes {
		if class.Name == name {
			return class
		}
	}
	return nil
}

// DefaultClass returns the default among the classes (C2).
func (s Snapshot) DefaultClass() *storagev1.StorageClass { return storageclass.Default(s.Classes) }

// PodsOf returns the pods that name the claim. Without any pod in the lists they are NotInCache.
func (s Snapshot) PodsOf(namespace, claim string) ([]*corev1.Pod, Source) {
	var users []*corev1.Pod
	for _, pod := range s.Pods {
		if reclaim.References(pod, namespace, claim) {
			users = append(users, pod)
		}
	}
	otherwise := FromCache
	if len(s.Pods) == 0 {
		otherwise = NotInCache
	}
	return users, s.source(obj.PodsKey(namespace), FromLiveRead, otherwise)
}

// AttachmentsOf returns the attachments that name the volume. If there is none, the source is NotInCache.
func (s Snapshot) AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, Source) {
	found := obj.AttachmentsOf(s.Attachments, volume)
	return found, s.source(obj.AttachmentsKey(), FromLiveRead, SourceOf(found))
}

// Find chooses a volume for the claim by looking at each. Errors are those of match.Check.
func (s Snapshot) Find(claim *corev1.PersistentVolumeClaim) (match.Match, error) {
	return match.Find(match.Request{Claim: claim, Volumes: s.Volumes, Terms: s.terms()(claim)})
}

// Summary says in numbers why no volume fits the claim. Errors are those of match.Check.
func (s Snapshot) Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error) {
	report, err := match.Explain(match.Request{Claim: claim, Volumes: s.Volumes, Terms: s.terms()(claim)})
	return report.Summary(), err
}

// Owners returns the claims whose status is Bound and that name the volume.
func (s Snapshot) Owners(volume string) []obj.Key { return s.owners()(volume) }

// Answered returns the answers to actions of this kind about this object.
func (s Snapshot) Answered(of ActionKind, about types.UID) []Answer {
	return AnswersAbout(s.Answers, of, about)
}

// Waiting returns the claim to offer the volume to.
func (s Snapshot) Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	terms := s.terms()
	var best *corev1.PersistentVolumeClaim
	for _, claim := range s.Claims {
		if index.CanBind(claim, volume, terms) {
			best = index.PreferredClaim(best, claim)
		}
	}
	return best
}

// terms returns the terms of any claim, after one pass over the claims.
func (s Snapshot) terms() func(*corev1.PersistentVolumeClaim) match.Terms {
	owners := s.owners()
	return func(claim *corev1.PersistentVolumeClaim) match.Terms {
		return match.Terms{Class: s.Class(storageclass.OfClaim(claim)), Owners: owners}
	}
}

// owners returns the owners of any volume, after one pass over the claims.
func (s Snapshot) owners() func(volume string) []obj.Key {
	owners := map[string][]obj.Key{}
	for _, claim := range s.Claims {
		if volume := phase.Owned(claim); volume != "" {
			owners[volume] = append(owners[volume], obj.KeyOf(claim))
		}
	}
	for volume, claims := range owners {
		slices.SortFunc(claims, obj.CompareKeys)
		owners[volume] = slices.Compact(claims) // a claim may be listed twice, and is not two
	}
	return func(volume string) []obj.Key { return owners[volume] }
}
