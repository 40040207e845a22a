package decision

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
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
	// UsersOf returns the names of as many pods as are asked for that use the claim (reclaim.UsesClaim). NotInCache
	// means that no pods are known at all. A cache proves nothing, and may leave out some where it would take long to find all.
	UsersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string, source Source)
	// UnscheduledPods returns the names of the first pods, in order, that name the claim, have no node and have not finished, and how many
	// there are: for a message, so that it may leave out some where it would take long to find all.
	UnscheduledPods(namespace, claim string, atMost int) (names []string, count int)
	// RecyclingBlockedBy returns the names of some pods, in order, that name the claim and keep a volume of it from being recycled
	// (reclaim.BlocksRecycling), and how many there are; 0 only if there is none, as far as the source tells.
	// again is the claim that has the name by now; nil if there is none.
	RecyclingBlockedBy(namespace, claim string, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int, source Source)
	// AttachmentsOf returns the attachments that name the volume, those being deleted too. NotInCache means that none is
	// known, which proves nothing; FromLiveRead, that all there are were listed since the last write.
	AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, Source)

	// Find chooses a volume for the claim among all volumes (M). Errors, here and of Summary, are those of match.Check.
	Find(claim *corev1.PersistentVolumeClaim) (match.Match, error)
	// Summary says in numbers why no volume fits the claim (E2).
	Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error)
	// Parsed returns what match.Parse returned for the claim; nil if it was not parsed, which is then done where it is needed.
	Parsed(claim *corev1.PersistentVolumeClaim) *match.Parsed
	// AbsentAsOf returns as of which resourceVersion a live read has shown that the object does not exist; "" if it has not, or
	// does not tell.
	AbsentAsOf(key obj.Key) string
	// Owners returns the claims that a volume without claimRef belongs to all the same (M2), in order. See match.Terms.
	Owners(volume string) []obj.Key
	// Claimant returns the claim that has the UID in the volume's claimRef and names the volume, or none, whatever else of that claimRef and of the claim's
	// status: the volume may have its data. Zero if there is none.
	Claimant(volume *corev1.PersistentVolume) obj.Key
	// ListedOwners returns those of the claims that were listed from the server since the last write, all of them, and that for which
	// a volume of that name is provisioned (P2); NotInCache means that they were not.
	ListedOwners(volume string) ([]*corev1.PersistentVolumeClaim, Source)
	// Former returns the last volume that had the name before, of which no more need be known than claimRef and policy; nil if none
	// is known to have gone. A claim that a cache does not show yet may be Bound to that one.
	Former(volume string) *corev1.PersistentVolume
	// FormerClaims returns the claims, with their UIDs, that the claimRef of a volume had before that was removed, had another name for the same UID, or was
	// written over with another claim, as far as they are known.
	FormerClaims(volume string) []*corev1.ObjectReference
	// MayStandFor returns the name of a volume that may stand, or have stood, for what a provisioner made for a claim (P2): one that a person has reserved for the
	// claim, or, where the claim or what was made for it had a volume before the server went back in time (W8), the one that is provisioned for it. It is "" if none is known.
	MayStandFor(claim obj.Key, uid types.UID) string
	// Answered returns the answers to actions of this kind about the object with this UID that were given since
	// the sync began, the oldest first.
	Answered(of ActionKind, about types.UID) []Answer
	// Waiting returns the claim that the volume is offered to next (W1); nil if no claim waits for it.
	Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim

	// Clock returns the time on the caller's clock, of which the tokens of announcements are made (R8).
	Clock() time.Time
	// AnnouncedFor returns for how long the announcement on a claim or volume has been seen unchanged, by a clock that is
	// never set back. An announcement that has just been seen has 0.
	AnnouncedFor(key obj.Key) time.Duration
}

// Source is where the result of a look-up in a View comes from. A cache that lacks an object proves nothing: the
// object may be newer than the cache. So a decision returns a Read before anything is released, reclaimed or declared Lost,
// and the next decision has its outcome.
type Source string

const (
	// NotInCache means that it is not in the cache, which proves nothing.
	NotInCache Source = ""
	// FromCache means that it was found in a cache, which may be old.
	FromCache Source = "Cached"
	// FromLiveRead means that it was read from the server since the last write.
	FromLiveRead Source = "Live"
	// AbsentInLiveRead means that the server said, since the last write, that it does not exist, and had said so before, or that
	// it cannot exist (obj.Key.IsNobodys). One NotFound alone may be a mistake, and one for which obj.IsAbsent is false is not the
	// server's.
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

// Answer is the outcome of an action that a later decision depends on: of a hook, of a CreateVolume, or of an announcement that
// was written. It counts until the sync ends in which it was given (Rh), through writes too. But the answer of a deleter, and
// what was announced, counts only until a provisioner runs for the same object.
type Answer struct {
	// Of is the kind of the action, and Hook the hook that it named.
	Of   ActionKind
	Hook string
	// For is the UID of the claim, or of the volume, that the action was about. What was made for another
	// object of the same name does not count.
	For types.UID
	// Token is that of the announcement, or of the call of a deleter or recycler.
	Token int64
	// Version is the resourceVersion of the claim that a provisioner was given.
	Version string
	// Standing is the token of the announcement on that claim, 0 without one; of a CreateVolume it is that of the provisioner before.
	Standing int64
	// Volume is what a provisioner returned, or what a CreateVolume has stored.
	Volume *corev1.PersistentVolume
	// Err is nil for success.
	Err error
	// Unsettled says that the action failed and may take effect yet, as a request that timed out.
	Unsettled bool
}

// AnswersAbout returns the answers to actions of this kind about the object with this UID, in their order.
func AnswersAbout(all []Answer, of ActionKind, about types.UID) []Answer {
	return slices.DeleteFunc(slices.Clone(all), func(answer Answer) bool { return answer.Of != of || answer.For != about })
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

// failed returns the answers with an error, in their order. The slice that it is given is modified.
func failed(answers []Answer) []Answer {
	return slices.DeleteFunc(answers, func(answer Answer) bool { return answer.Err == nil })
}

// Final reports whether the hook is not to be called again for the same: it has succeeded, or refused for good.
func (a Answer) Final() bool {
	meaning := a.hookError().Meaning
	return a.Err == nil || meaning == hooks.Refused || meaning == hooks.NotMine
}

// hookError returns what the hook said beside its error.
func (a Answer) hookError() hooks.Error {
	if said, ok := errors.AsType[*hooks.Error](a.Err); ok {
		return *said
	}
	return hooks.Error{Err: a.Err}
}

// retry names the hook in the events, and sets when a Wait for it ends: when the hook said, with back-off, or only when an
// object changes.
func (a Answer) retry(waiting Action) Action {
	waiting.Events = failedIn(a.Hook, waiting.Events)
	switch said := a.hookError(); {
	case waiting.Kind != Wait:
	case said.Meaning == hooks.InProgress && said.After > 0:
		waiting.Retry, waiting.After = RetryAfter, said.After
	case a.Final():
		waiting.Retry = RetryNever
	default:
		waiting.Retry = RetryBackoff
	}
	return waiting
}

// Options holds what an administrator decided beforehand. The zero value does what kube-controller-manager does as it comes:
// in-tree provisioners are migrated, and what is in use is protected.
type Options struct {
	// Migrations are the in-tree provisioners that a CSI driver stands in for (G1). Nil is the table
	// of G1; an empty map migrates nothing.
	Migrations storageclass.Migrations
	// Protection is ProtectionOn unless set.
	Protection Protection
	// Hooks are the names of the hooks that can be run. A Controller fills them in from its own.
	Hooks hooks.Names
	// HookTimeout limits a call of a hook; hooks.DefaultTimeout if zero. A Controller fills it in from its own hooks.
	HookTimeout time.Duration
	// Identity is who announces that storage is reclaimed (R8). No two processes have the same, nor has one after a restart:
	// that waits for the call which it may have left behind. A Controller takes a random one if it is empty. An announcement
	// without one is nobody's own.
	Identity string
}

// Protection says whether the in-use protection finalizers are kept (F). It is on by default, for an API server adds them to
// every claim and volume, and what is deleted stays until somebody removes them. Beside kube-controller-manager's protection
// controllers that is harmless, for both go by the same rules; ProtectionOff saves watching pods there.
type Protection string

const (
	// ProtectionOn means that they are added and removed, which needs pods to be observed.
	ProtectionOn Protection = "On"
	// ProtectionOff means that they are left to kube-controller-manager.
	ProtectionOff Protection = "Off"
)

// WithDefaults returns the options with the defaults spelled out.
func (o Options) WithDefaults() Options {
	if o.Migrations == nil {
		o.Migrations = storageclass.InTreeMigrations()
	}
	o.Protection = cmp.Or(o.Protection, ProtectionOn)
	o.HookTimeout = cmp.Or(max(0, o.HookTimeout), hooks.DefaultTimeout)
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
	// Absent are the resourceVersions as of which live reads have shown objects not to exist, where they tell.
	Absent map[obj.Key]string
	// Answers are the outcomes of earlier actions, the oldest first.
	Answers []Answer
	// Now is the time, and Announced when the announcement on each claim or volume was first seen as it is. What Announced
	// lacks has just been seen.
	Now       metav1.Time
	Announced map[obj.Key]metav1.Time
}

var _ View = Snapshot{}

// Volume looks up a volume by name.
func (s Snapshot) Volume(name string) (*corev1.PersistentVolume, Source) {
	return lookUp(s, s.Volumes, obj.VolumeKey(name))
}

// Claim looks up a claim.
func (s Snapshot) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Source) {
	return lookUp(s, s.Claims, obj.ClaimKey(namespace, name))
}

// Class looks up a class.
func (s Snapshot) Class(name string) *storagev1.StorageClass {
	class, _ := lookUp(s, s.Classes, obj.Key{Kind: obj.KindClass, Name: name})
	return class
}

// lookUp returns the object of that key among all of its kind.
func lookUp[T obj.Object](s Snapshot, all []T, key obj.Key) (found T, source Source) {
	for _, object := range all {
		if object.GetNamespace() == key.Namespace && object.GetName() == key.Name {
			return object, s.source(key, FromLiveRead, FromCache)
		}
	}
	return found, s.source(key, AbsentInLiveRead, NotInCache)
}

func (s Snapshot) source(key obj.Key, live, otherwise Source) Source {
	if slices.Contains(s.LiveReads, key) || key.IsNobodys() {
		return live
	}
	return otherwise
}

// Clock returns s.Now.
func (s Snapshot) Clock() time.Time { return s.Now.Time }

// AnnouncedFor returns the time from s.Announced to s.Now; 0 if it is not known.
func (s Snapshot) AnnouncedFor(key obj.Key) time.Duration {
	if since, seen := s.Announced[key]; seen {
		return s.Now.Sub(since.Time)
	}
	return 0
}

// DefaultClass returns the default among the classes (C2).
func (s Snapshot) DefaultClass() *storagev1.StorageClass { return storageclass.Default(s.Classes) }

// UsersOf returns the names of pods that use the claim. Without any pod in the lists they are NotInCache.
func (s Snapshot) UsersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string, source Source) {
	return UsersOf(s.Pods, claim, atMost), s.podSource(claim.Namespace)
}

// UsersOf is to View.UsersOf what Unscheduled is to View.UnscheduledPods.
func UsersOf(pods []*corev1.Pod, claim *corev1.PersistentVolumeClaim, atMost int) (names []string) {
	for _, pod := range pods {
		if len(names) < atMost && reclaim.UsesClaim(pod, claim) {
			names = append(names, pod.Name)
		}
	}
	return names
}

func (s Snapshot) podSource(namespace string) Source {
	otherwise := FromCache
	if len(s.Pods) == 0 {
		otherwise = NotInCache
	}
	return s.source(obj.PodsKey(namespace), FromLiveRead, otherwise)
}

// UnscheduledPods returns the names of the first pods that name the claim and are still to be scheduled.
func (s Snapshot) UnscheduledPods(namespace, claim string, atMost int) (names []string, count int) {
	return Unscheduled(reclaim.PodsOf(s.Pods, namespace, claim), atMost)
}

// Unscheduled returns the names of the first of the pods, in order, that have no node and have not finished, and how many there are:
// what View.UnscheduledPods returns of the pods that name a claim.
func Unscheduled(pods []*corev1.Pod, atMost int) (names []string, count int) {
	return firstOf(pods, atMost, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" && !reclaim.Finished(pod) })
}

// RecyclingBlockedBy returns the names of the first pods that name the claim and keep its volume from being recycled.
func (s Snapshot) RecyclingBlockedBy(namespace, claim string, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int, source Source) {
	names, count = RecyclingBlockedBy(reclaim.PodsOf(s.Pods, namespace, claim), again, atMost)
	return names, count, s.podSource(namespace)
}

// RecyclingBlockedBy is to View.RecyclingBlockedBy what Unscheduled is to View.UnscheduledPods.
func RecyclingBlockedBy(pods []*corev1.Pod, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int) {
	return firstOf(pods, atMost, func(pod *corev1.Pod) bool { return reclaim.BlocksRecycling(pod, again) })
}

// firstOf returns the names of the first of the pods that count, in order, and how many there are.
func firstOf(pods []*corev1.Pod, atMost int, counts func(*corev1.Pod) bool) (names []string, count int) {
	for _, pod := range pods {
		if counts(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), atMost)], len(names)
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

// Parsed returns nil: nothing is kept.
func (s Snapshot) Parsed(*corev1.PersistentVolumeClaim) *match.Parsed { return nil }

// AbsentAsOf returns s.Absent of the key.
func (s Snapshot) AbsentAsOf(key obj.Key) string { return s.Absent[key] }

// Owners returns the claims whose status is Bound and that name the volume.
func (s Snapshot) Owners(volume string) []obj.Key { return s.owners()(volume) }

// Claimant returns the claim that has the UID in the volume's claimRef and names the volume, or none.
func (s Snapshot) Claimant(volume *corev1.PersistentVolume) obj.Key {
	for _, claim := range s.Claims {
		if phase.Claims(claim, volume) {
			return obj.KeyOf(claim)
		}
	}
	return obj.Key{}
}

// ListedOwners returns the same as Owners, if all claims were listed, and the claim that the volume was made for.
func (s Snapshot) ListedOwners(volume string) (owners []*corev1.PersistentVolumeClaim, source Source) {
	for _, claim := range s.Claims {
		if phase.Owned(claim) == volume || ProvisionedName(claim.UID) == volume {
			owners = append(owners, claim)
		}
	}
	return owners, s.source(obj.ClaimsKey(), FromLiveRead, NotInCache)
}

// Former returns nil: the lists have nothing of what was before.
func (s Snapshot) Former(string) *corev1.PersistentVolume { return nil }

// FormerClaims returns none, as Former does.
func (s Snapshot) FormerClaims(string) []*corev1.ObjectReference { return nil }

// MayStandFor returns a volume that a person has reserved for the claim: of one that was there before the lists have nothing.
func (s Snapshot) MayStandFor(key obj.Key, uid types.UID) string {
	for _, volume := range s.Volumes {
		if StandsInstead(volume, key, uid) {
			return volume.Name
		}
	}
	return ""
}

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
