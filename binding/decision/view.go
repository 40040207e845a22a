package decision

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// View is what a decision looks up in the rest of the cluster. Everything in it is read only.
// Snapshot implements it on plain lists.
type View interface {
	// Volume looks up a volume by name.
	Volume(name string) (*corev1.PersistentVolume, Source)
	// Claim looks up a claim.
	Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Source)
	// Class looks up a class; nil if it is not known.
	Class(name string) *storagev1.StorageClass
	// DefaultClass returns the class that claims without one get (C2); nil if there is none.
	DefaultClass() *storagev1.StorageClass
	// PodsOf returns the pods of the namespace that name the claim in a volume, finished ones too. NotInCache
	// means that no pods are known at all.
	PodsOf(namespace, claim string) ([]*corev1.Pod, Source)
	// AttachmentsOf returns the attachments that name the volume, those being deleted too. NotInCache means that none is
	// known, which proves nothing; FromLiveRead, that all there are were listed since the last write.
	AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, Source)

	// Find chooses a volume for the claim among all volumes (M). Errors, here and of Summary, are those of match.Check.
	Find(claim *corev1.PersistentVolumeClaim) (match.Match, error)
	// Summary says in numbers why no volume fits the claim (E2).
	Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error)
	// Owners returns the claims that a volume without claimRef belongs to all the same (M2), in order. See match.Terms.
	Owners(volume string) []obj.Key
	// Answered returns the answers to actions of this kind about the object with this UID that were given since
	// the sync began, the oldest first.
	Answered(of ActionKind, about types.UID) []Answer
	// Waiting returns the claim that the volume is offered to next (W1); nil if no claim waits for it.
	Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim
}

// Source is where the result of a look-up in a View comes from. A cache that lacks an object proves nothing: the
// object may be newer than the cache. So a decision returns a Read before anything is released, reclaimed or declared Lost,
// and the next decision has its outcome.
type Source string

const (
	// NotInCache: not in the cache, which proves nothing.
	NotInCache Source = ""
	// FromCache: found in a cache, which may be old.
	FromCache Source = "Cached"
	// FromLiveRead: read from the server since the last write.
	FromLiveRead Source = "Live"
	// AbsentInLiveRead: the server said, since the last write, that it does not exist, and had said so before. One NotFound
	// alone may be a mistake, and one for which obj.IsAbsent is false is not the server's.
	AbsentInLiveRead Source = "Absent"
)

// IsLive reports whether the server itself said so.
func (s Source) IsLive() bool { return s == FromLiveRead || s == AbsentInLiveRead }

// SourceOf returns the source of attachments that a cache returned: that there is none proves nothing.
func SourceOf(found []*storagev1.VolumeAttachment) Source {
	if len(found) == 0 {
		return NotInCache
	}
	return FromCache
}

// Answer is the outcome of an action that a later decision depends on: of a hook, or of a CreateVolume that
// failed. It counts until the sync ends in which it was given (Rh), through writes too. But the answer of a deleter counts
// only until a provisioner runs for the same object.
type Answer struct {
	// Of is the kind of the action, and Hook the hook that it named.
	Of   ActionKind
	Hook string
	// For is the UID of the claim, or of the volume, that the action was about. What was made for another
	// object of the same name does not count.
	For types.UID
	// Volume is what a provisioner returned.
	Volume *corev1.PersistentVolume
	// Err is nil for success.
	Err error
}

// AnswersAbout returns the answers to actions of this kind about the object with this UID, in their order.
func AnswersAbout(all []Answer, of ActionKind, about types.UID) (some []Answer) {
	for _, answer := range all {
		if answer.Of == of && answer.For == about {
			some = append(some, answer)
		}
	}
	return some
}

// lastOf returns the newest of the answers that one hook gave. Another hook may have run for the same object before,
// as when a class got another provisioner.
func lastOf(hook string, answers []Answer) (answer Answer, ran bool) {
	for _, answer := range slices.Backward(answers) {
		if answer.Hook == hook {
			return answer, true
		}
	}
	return Answer{}, false
}

// hookError returns what the hook said beside its error.
func (a Answer) hookError() hooks.Error {
	var said *hooks.Error
	if errors.As(a.Err, &said) {
		return *said
	}
	return hooks.Error{Err: a.Err}
}

// retry sets when a Wait for the hook ends: when the hook said, with back-off, or only when an object changes.
func (a Answer) retry(waiting Action) Action {
	switch said := a.hookError(); {
	case said.Meaning == hooks.InProgress && said.After > 0:
		waiting.Retry, waiting.After = RetryAfter, said.After
	case said.Meaning == hooks.Refused, said.Meaning == hooks.NotMine:
		waiting.Retry = RetryNever
	default:
		waiting.Retry = RetryBackoff
	}
	return waiting
}

// Options holds what an administrator decided beforehand. The zero value suits a cluster as it comes: in-tree provisioners
// are migrated, and kube-controller-manager protects what is in use.
type Options struct {
	// Migrations are the in-tree provisioners that a CSI driver stands in for (G1). Nil is the table
	// of G1; an empty map migrates nothing.
	Migrations storageclass.Migrations
	// Protection is off unless set.
	Protection Protection
	// Hooks are the names of the hooks that can be run. A Controller fills them in from its own.
	Hooks hooks.Names
}

// Protection says whether the in-use protection finalizers are kept (F).
type Protection string

const (
	// ProtectionOff leaves them to kube-controller-manager.
	ProtectionOff Protection = ""
	// ProtectionOn adds and removes them, which needs pods to be observed.
	ProtectionOn Protection = "On"
)

// WithDefaults returns the options with the defaults spelled out.
func (o Options) WithDefaults() Options {
	if o.Migrations == nil {
		o.Migrations = storageclass.InTreeMigrations()
	}
	return o
}

func (o Options) reclaim() reclaim.Options {
	return reclaim.Options{
		Migrations:     o.Migrations,
		Deleters:       o.Hooks.Deleters,
		SourceDeleters: o.Hooks.SourceDeleters,
		Recyclers:      o.Hooks.Recyclers,
	}
}
