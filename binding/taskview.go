package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// taskView is what a sync knows: the state, and what it read live itself.
type taskView struct {
	*state
	task *task
}

var _ View = &taskView{}

// evidence is what a look-up of the key is worth.
func (v *taskView) evidence(key obj.Key) Evidence {
	_, live := v.task.live[key]
	exists := v.known(key) != nil
	switch {
	case live && exists:
		return Live
	case live:
		return Absent
	case exists:
		return Cached
	}
	return Unknown
}

func (v *taskView) Volume(name string) (*corev1.PersistentVolume, Evidence) {
	return v.volumes[name], v.evidence(obj.VolumeKey(name))
}

func (v *taskView) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Evidence) {
	key := obj.ClaimKey(namespace, name)
	return v.claims[key], v.evidence(key)
}

func (v *taskView) Answered(of ActionKind, about types.UID) []Answer {
	return answered(v.task.answers, of, about)
}

func (v *taskView) Class(name string) *storagev1.StorageClass { return v.classes[name] }

func (v *taskView) DefaultClass() *storagev1.StorageClass {
	return storageclass.Default(slices.Collect(maps.Values(v.classes)))
}

func (v *taskView) PodsOf(namespace, claim string) ([]*corev1.Pod, Evidence) {
	var users []*corev1.Pod
	if listed, ok := v.task.pods[namespace]; ok {
		for _, pod := range listed {
			if reclaim.References(pod, namespace, claim) {
				users = append(users, pod)
			}
		}
		return users, Live
	}
	for _, key := range v.using.of(obj.ClaimKey(namespace, claim)) {
		users = append(users, v.pods[key])
	}
	if len(v.pods) == 0 {
		return nil, Unknown
	}
	return users, Cached
}

func (v *taskView) AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, Evidence) {
	if _, listed := v.task.live[obj.AttachmentsKey()]; listed {
		return attachmentsOf(v.task.attachments, volume), Live
	}
	var found []*storagev1.VolumeAttachment
	for _, key := range v.attached.of(obj.VolumeKey(volume)) {
		found = append(found, v.attachments[key])
	}
	return found, evidenceOf(found)
}

func (v *taskView) Find(claim *corev1.PersistentVolumeClaim) (match.Match, error) {
	return v.index.Find(claim, match.Terms{Class: v.classOf(claim)})
}

func (v *taskView) Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error) {
	return v.index.Summary(claim, match.Terms{Class: v.classOf(claim)})
}

// Owners are the claims that are Bound and name the volume, or the one that it is being bound to: by a
// sync that runs, or by one that does not know whether its write succeeded.
func (v *taskView) Owners(volume string) []obj.Key { return v.index.Owners(volume) }

// Waiting is the claim to offer a volume to (W1): the one that the volume is reserved for, or one that names
// it, or the neediest that it fits.
func (v *taskView) Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	takes := func(claim *corev1.PersistentVolumeClaim) bool { return v.takes(claim, volume) }
	if volume.Spec.ClaimRef != nil {
		if claim := v.claims[obj.ReferencedClaim(volume)]; claim != nil && takes(claim) {
			return claim
		}
		return nil
	}
	if called := v.called.Get(v.offers.awaited[obj.VolumeKey(volume.Name)]); called != nil && !v.busy(obj.KeyOf(called)) {
		return called // its turn comes before the next
	}
	var best *corev1.PersistentVolumeClaim
	for key := range v.naming[obj.VolumeKey(volume.Name)] {
		if claim := v.claims[key]; takes(claim) {
			best = index.Needier(best, claim, volume)
		}
	}
	if best != nil {
		return best
	}
	if claim := v.waiting.First(volume, takes); claim != nil {
		return claim
	}
	// Whoever was called will look at all volumes, this one too; it waits for that before it is Available.
	return v.called.First(volume, takes)
}

// takes reports whether to offer the volume to the claim: it waits, and has not had its turn.
func (v *taskView) takes(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return !v.busy(obj.KeyOf(claim)) && !v.offers.tried(volume, claim) && !v.refusedBefore(claim, volume) && index.WaitsFor(claim, volume, v.terms)
}

func (v *taskView) terms(claim *corev1.PersistentVolumeClaim) match.Terms {
	return match.Terms{Class: v.classOf(claim), Owners: v.Owners}
}

// refusedBefore reports whether the claim comes back by itself after a refusal: then other volumes leave it
// in peace, unless it or the volume that it was about has changed.
func (v *taskView) refusedBefore(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	r, ok := v.refused[obj.KeyOf(claim)]
	changed := r.claimVersion != claim.ResourceVersion || r.volume == volume.Name && r.volumeVersion != volume.ResourceVersion
	return ok && !changed
}

// busy reports whether a sync is binding the claim to some volume already.
func (v *taskView) busy(claim obj.Key) bool {
	running := v.tasks[claim]
	return running != nil && running.volume != (obj.Key{})
}
