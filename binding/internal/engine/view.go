package engine

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// taskView is what the decisions of a sync may know: the state, and what the sync read live itself.
type taskView struct {
	*State
	task *task
}

var _ decision.View = &taskView{}

// sourceOf returns what a look-up of the key is worth. A live read of an object whose end was seen since is worth nothing: another may be there by now.
func (v *taskView) sourceOf(key obj.Key) decision.Source {
	read, live := v.task.live[key]
	exists := v.Known(key) != nil
	switch {
	case live && exists:
		return decision.FromLiveRead
	case live && read.Object == nil, key.IsNobodys():
		return decision.AbsentInLiveRead
	case exists:
		return decision.FromCache
	}
	return decision.NotInCache
}

func (v *taskView) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	return v.volume(name), v.sourceOf(obj.VolumeKey(name))
}

func (v *taskView) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	key := obj.ClaimKey(namespace, name)
	return v.claim(key), v.sourceOf(key)
}

func (v *taskView) AbsentAsOf(key obj.Key) string { return obj.AbsentAsOf(v.task.live[key].Err) }

func (v *taskView) Answered(of decision.ActionKind, about types.UID) []decision.Answer {
	answers := decision.AnswersAbout(v.task.answers, of, about)
	if kept, deleted := v.deleted[about]; deleted && of == decision.RunDeleter {
		return append([]decision.Answer{kept}, answers...)
	}
	return answers
}

// Clock returns the time that was set last.
func (v *taskView) Clock() time.Time { return v.now }

// AnnouncedFor returns for how long the object's announcement has been seen as it is.
func (v *taskView) AnnouncedFor(key obj.Key) time.Duration {
	if seen, announced := v.announced[key]; announced {
		return v.now.Sub(seen.since)
	}
	return 0
}

func (v *taskView) DefaultClass() *storagev1.StorageClass {
	return storageclass.Default(slices.Collect(all[*storagev1.StorageClass](&v.store, obj.KindClass)))
}

func (v *taskView) UsersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string, source decision.Source) {
	listed, source := v.listedPods(claim.Namespace)
	names = v.usersOf(claim, atMost)
	return append(names, listed.usersOf(claim, atMost-len(names))...), source
}

// listedPods returns the pods that the sync itself listed from the server, if it has, and the source of these and of those in the cache.
func (v *taskView) listedPods(namespace string) (*store, decision.Source) {
	if read, live := v.task.live[obj.PodsKey(namespace)]; live {
		parsed := read.Parsed()
		return &store{podsByClaim: parsed.podsByClaim, podClaims: parsed.podClaims}, decision.FromLiveRead
	}
	if len(v.objects[obj.KindPod]) == 0 {
		return &store{}, decision.NotInCache
	}
	return &store{}, decision.FromCache
}

func (v *taskView) UnscheduledPods(namespace, claim string, atMost int) (names []string, count int) {
	return v.unscheduled(obj.ClaimKey(namespace, claim), atMost)
}

func (v *taskView) RecyclingBlockedBy(namespace, claim string, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int, source decision.Source) {
	listed, source := v.listedPods(namespace)
	if names, count = v.blocking(obj.ClaimKey(namespace, claim), again, atMost); count == 0 { // else those count that the cache has, whatever the list has
		names, count = listed.blocking(obj.ClaimKey(namespace, claim), again, atMost)
	}
	return names, count, source
}

func (v *taskView) AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, decision.Source) {
	var found []*storagev1.VolumeAttachment
	for _, key := range v.attachmentsByVolume.of(obj.VolumeKey(volume)) {
		found = append(found, as[*storagev1.VolumeAttachment](v.Known(key)))
	}
	if read, live := v.task.live[obj.AttachmentsKey()]; live {
		return append(found, obj.AttachmentsOf(read.Attachments, volume)...), decision.FromLiveRead
	}
	return found, decision.SourceOf(found)
}

func (v *taskView) Find(claim *corev1.PersistentVolumeClaim) (match.Match, error) {
	return v.index.Find(claim, v.searchTerms(claim))
}

func (v *taskView) Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error) {
	return v.index.Summary(claim, v.searchTerms(claim))
}

// Owners returns the claims that are Bound and name the volume, or another than the sync's own that it is being bound to: by a sync that
// runs, or by a write whose outcome is not known.
func (v *taskView) Owners(volume string) []obj.Key {
	owners := v.index.Owners(volume)
	switch claim := v.claim(v.task.key); {
	case slices.Contains(owners, obj.VolumeKey(volume)): // see giveBack
		return nil
	case claim != nil && len(owners) == 1 && owners[0] == v.task.key && phase.Owned(v.asOwner(claim)) != volume: // it is merely being bound to it
		return nil
	}
	return owners
}

func (v *taskView) ListedOwners(volume string) ([]*corev1.PersistentVolumeClaim, decision.Source) {
	if read, live := v.task.live[obj.ClaimsKey()]; live {
		return slices.DeleteFunc(slices.Clone(read.Parsed().owners[volume]), func(claim *corev1.PersistentVolumeClaim) bool {
			return phase.Lost(claim) == volume && v.asOwner(claim) == claim
		}), decision.FromLiveRead
	}
	return nil, decision.NotInCache
}

// Former returns what is known of the last volume of that name that has gone.
func (v *taskView) Former(volume string) *corev1.PersistentVolume {
	if !v.goneVolumes.has(volume) {
		return nil
	}
	last := cmp.Or(v.goneVolumes.of(volume), &lastVolume{})
	return last.named(volume)
}

// Waiting returns the claim to offer a volume to: the one that the volume is pre-bound to, or one that names it, or the
// neediest that it fits (W1).
func (v *taskView) Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	offerable := func(claim *corev1.PersistentVolumeClaim) bool { return v.offerable(claim, volume) }
	if volume.Spec.ClaimRef != nil {
		if claim := v.claim(obj.ReferencedClaim(volume)); claim != nil && offerable(claim) {
			return claim
		}
		return nil
	}
	if notified := v.notified.Get(v.offers.pendingOn[obj.VolumeKey(volume.Name)]); notified != nil && !v.binding(obj.KeyOf(notified)) {
		return notified // its attempt comes before the next
	}
	var best *corev1.PersistentVolumeClaim
	for key := range v.claimsByVolume[obj.VolumeKey(volume.Name)] {
		if claim := v.claim(key); offerable(claim) {
			best = index.PreferredClaim(best, claim)
		}
	}
	if best != nil {
		return best
	}
	if claim := v.waiting.First(volume, offerable); claim != nil {
		return claim
	}
	// A claim that was notified will look at all volumes. This one waits for that before it is made Available.
	return v.notified.First(volume, offerable)
}

// offerable reports whether to offer the volume to the claim: it waits, can take it now, and has not had its attempt.
func (v *taskView) offerable(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return !v.binding(obj.KeyOf(claim)) && !v.offers.tried(volume, claim) && !v.backsOff(claim, volume) &&
		!v.halted(claim) && index.CanBind(claim, volume, v.terms)
}

// halted reports whether a claim takes no volume yet (decision.Halted). It is worked out once for each version: a tenant may have thousands of
// claims with long announcements, and each volume that comes asks for all that it fits (X9).
func (v *taskView) halted(claim *corev1.PersistentVolumeClaim) bool {
	key := obj.KeyOf(claim)
	seen, announced := v.announced[key]
	if announced && (seen.version == "" || seen.version != claim.ResourceVersion) {
		seen.version, seen.halted = claim.ResourceVersion, v.now.Add(decision.Halted(claim, v, v.options))
		v.announced[key] = seen
	}
	return announced && v.now.Before(seen.halted)
}

func (v *taskView) terms(claim *corev1.PersistentVolumeClaim) match.Terms {
	return match.Terms{Class: v.classOf(claim), Owners: v.Owners, Parsed: v.Parsed(claim)}
}

// backsOff reports whether the claim is to be synced again after a delay, as the server rejected a write for it. It is
// offered no other volume meanwhile, unless it or the volume that the write was about has changed.
func (v *taskView) backsOff(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	r, ok := v.rejected[obj.KeyOf(claim)]
	changed := r.claimVersion != claim.ResourceVersion || r.volume == volume.Name && r.volumeVersion != volume.ResourceVersion
	return ok && !changed
}

// binding reports whether a sync is binding the claim to some volume already.
func (v *taskView) binding(claim obj.Key) bool {
	running := v.tasks[claim]
	return running != nil && running.volume != (obj.Key{})
}
