package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// keptAdvices returns what is told of volumes that are left to a person: their storage is deleted, or may be, or nobody deletes
// it. Random histories hardly reach them. Directed ones do, and follow each.
func keptAdvices() []advice {
	return []advice{
		{"^(VolumeFailedDelete: )?volume .* is being deleted and no claim had it, .* set its reclaim policy to Retain, which leaves the storage and lets the volume go$", keepStorage},
		{"^FailedBinding: the storage of volume .* is deleted, and the volume was changed meanwhile; delete the volume or, if it has its storage again, remove the annotation", endDestroyed},
		{"the storage of volume .* is deleted, and the volume was changed meanwhile; delete the volume or, if it has its storage again, remove the annotation", endDestroyed},
		{"^(DataDestroyed|Wait): its storage is deleted, so that no claim gets it: delete the volume or, if it has its storage again, remove the annotation", endDestroyed},
		{"^(VolumeFailedDelete: )?volume .* was changed while its storage was about to be deleted, .* remove the annotation .*, but if it has none, first set its reclaim policy to Retain and delete it$", lookAfterDeleter},
		{"^FailedBinding: volume .* was changed while its storage was about to be deleted, .* remove the annotation .*, but if it has none, first set its reclaim policy to Retain and delete it$", lookAfterDeleter},
		{"^(VolumeFailedRecycle: )?volume .* was changed while a recycler was about to remove its data, .* remove the annotation", lookAfterRecycler},
		{"^FailedBinding: volume .* was changed while a recycler was about to remove its data, .* remove the annotation", lookAfterRecycler},
		{"^(DataDestroyed|Wait): controller .* has announced that it reclaims it, so that no claim gets it: once nobody is at work on it and it has its storage, remove the annotation", lookAfterAnyone},
		{"the volume cannot be reclaimed: no token is larger than that in its annotation .*: remove the annotation$", removeToken},
		{"^Deleting: .* its policy is Retain, so that its storage stays: create a volume for that storage once this one is gone$", createAgain},
		{"^(VolumeMismatch: )?claimRef of volume .* and no claim can have that name: write namespace and name of the claim whose data is on the volume, or remove claimRef, which gives the volume to any claim$", free},
		{"to give it to this one, set its claimRef to .*, and the others become Lost: ", awardToThis},
		{"set the policy to Retain first, and then see what is left$", retainFirst},
	}
}

// free removes the claimRef of a volume, whose storage stays.
func free(r *reader, a message) promise {
	r.editVolume("frees", obj.VolumeKey(a.volume.Name), freed)
	return r.stay([]*corev1.PersistentVolume{a.volume})
}

// edits are the ways in which an administrator changes a volume while its storage is being reclaimed.
var edits = map[string]VolumeEdit{
	"Retain":               WithPolicy(corev1.PersistentVolumeReclaimRetain),
	"freed":                freed,
	"reserved for another": RefersTo("default", "c1", ""),
	"Retain and freed": func(v *corev1.PersistentVolume) {
		freed(v)
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	},
}

func freed(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }

// answers are what a deleter or recycler does meanwhile, and answers.
var answers = map[string]func(r *reader, volume *corev1.PersistentVolume) error{
	"goes on": func(*reader, *corev1.PersistentVolume) error { return &hooks.Error{Meaning: hooks.InProgress} },
	"works":   func(r *reader, volume *corev1.PersistentVolume) error { return r.destroy(volume) },
	"works, and fails": func(r *reader, volume *corev1.PersistentVolume) error {
		return errors.Join(r.destroy(volume), ErrConnection)
	},
}

// situations returns the ways in which the volume v0 comes to be left to a person, by name. The claim c0 has had it, and c1
// waits for it.
func situations() map[string]func(r *reader) {
	all := map[string]func(r *reader){
		"it is deleted without a claim": func(r *reader) {
			r.create(bindingtest.Volume("v0", "2Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), VolumeNote(ProvisionedBy, "kubernetes.io/glusterfs")))
			r.rest()
			r.remove(obj.VolumeKey("v0"))
		},
		"others are to delete its storage, and its claim is restored from a backup": func(r *reader) {
			r.create(bindingtest.Volume("v0", "2Gi", WithPolicy(corev1.PersistentVolumeReclaimDelete), VolumeNote(ProvisionedBy, "disks.example.com")))
			r.create(bindingtest.Claim("default", "c0", "1Gi", RequestingClass(new(""))))
			r.rest()
			backup := r.Server.Claim("default", "c0").Annotations
			r.end(obj.ClaimKey("default", "c0"))
			r.rest()
			r.create(bindingtest.Claim("default", "c0", "1Gi", RequestingClass(new("")), Naming("v0"), func(c *corev1.PersistentVolumeClaim) { c.Annotations = backup }))
		},
		"several claims are bound to it": func(r *reader) {
			r.bind(corev1.PersistentVolumeReclaimRetain)
			for r.Server.Volume("v0").Spec.ClaimRef != nil {
				r.contend(r.Server.Claim("default", "c0"))
			}
		},
		"its claimRef loses namespace and name, and its claim is deleted": func(r *reader) {
			r.bind(corev1.PersistentVolumeReclaimDelete)
			r.editVolume("applies", obj.VolumeKey("v0"), RefersTo("", "", r.Server.Claim("default", "c0").UID))
			r.end(obj.ClaimKey("default", "c0"))
		},
		"it is deleted in a transfer": func(r *reader) {
			r.bind(corev1.PersistentVolumeReclaimRetain)
			r.editVolume("keeps a finalizer on", obj.VolumeKey("v0"), func(v *corev1.PersistentVolume) { v.Finalizers = append(v.Finalizers, "example.com/backup") })
			move := attempt{operation: "move", volume: "v0", to: toClaim("default", "c1")}
			for _, step := r.try(move); step.Kind != reclaim.StepCreateClaim; _, step = r.try(move) {
				r.takeStep(step)
				r.removeFinalizers(obj.VolumeKey("v0"), obj.ClaimKey("default", "c0"))
			}
			r.remove(obj.VolumeKey("v0"))
		},
		"its storage is deleted in a transfer": func(r *reader) {
			r.bind(corev1.PersistentVolumeReclaimRetain)
			move := attempt{operation: "move", volume: "v0", to: toClaim("default", "c1")}
			_, step := r.try(move)
			r.takeStep(step)
			destroyed := reclaim.Announcement{By: "another", Token: 1, Done: true}
			r.editVolume("deletes the storage of", obj.VolumeKey("v0"), func(v *corev1.PersistentVolume) { reclaim.Announce(v, destroyed) })
			r.end(obj.ClaimKey("default", "c0"))
		},
	}
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		all[fmt.Sprintf("%s: its token is the largest", policy)] = func(r *reader) {
			r.bind(policy)
			largest := reclaim.Announcement{By: "another", Token: math.MaxInt64, Recycles: policy == corev1.PersistentVolumeReclaimRecycle}
			r.editVolume("announces on", obj.VolumeKey("v0"), func(v *corev1.PersistentVolume) { reclaim.Announce(v, largest) })
			r.end(obj.ClaimKey("default", "c0"))
		}
		for answer, answers := range answers {
			for change, edit := range edits {
				for _, names := range []string{"", "v0"} {
					all[fmt.Sprintf("%s: its hook %s, it is %s, and c1 names %q", policy, answer, change, names)] = func(r *reader) {
						r.bind(policy)
						r.create(bindingtest.Claim("default", "c1", "1Gi", RequestingClass(new("")), Naming(names)))
						r.reclaims = func(volume *corev1.PersistentVolume) error {
							r.editVolume("changes", obj.VolumeKey("v0"), edit)
							r.reclaims = r.destroy
							return answers(r, volume)
						}
						r.end(obj.ClaimKey("default", "c0"))
					}
				}
			}
		}
	}
	return all
}

// bind binds v0 to c0.
func (r *reader) bind(policy corev1.PersistentVolumeReclaimPolicy) {
	r.create(bindingtest.Volume("v0", "2Gi", WithPolicy(policy)))
	r.create(bindingtest.Claim("default", "c0", "1Gi", RequestingClass(new(""))))
	r.rest()
}

// playDirected brings each situation about, and follows each sentence that is told in it. The seed decides which controllers there
// are, and which of two things a reader does.
func playDirected(t *testing.T, followed map[string]int) {
	all := situations()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for seed := range uint64(2) {
			for at, sentences := 0, 1; at < sentences; at++ {
				r := newReader(rand.NewPCG(seed, 12), followed)
				r.undisturbed = true
				all[name](r)
				r.rest()
				told := r.allTold()
				require.NotEmpty(t, told, "%s: nobody is told anything:\n%s", name, strings.Join(r.log, "\n"))
				sentences = len(told)
				r.follow(told[at])
				require.Empty(t, r.Broken, "%s, seed %d:\n%s", name, seed, strings.Join(r.log, "\n"))
			}
		}
	}
}

// allTold returns what the events, the status, CheckPair and the operations say of v0 and the two claims.
func (r *reader) allTold() (told []message) {
	told = r.eventsOf(obj.VolumeKey("v0"))
	if status := r.Server.Volume("v0").Status; status.Phase == corev1.VolumeFailed { // its event was sent when it became so
		again := func() []string { return []string{status.Reason + ": " + r.next(obj.VolumeKey("v0")).Why} }
		told = append(told, message{text: status.Reason + ": " + status.Message, volume: r.Server.Volume("v0"), again: again})
	}
	for _, name := range []string{"c0", "c1"} {
		told = append(told, r.eventsOf(obj.ClaimKey("default", name))...)
	}
	volume := r.Server.Volume("v0")
	for _, claim := range []*corev1.PersistentVolumeClaim{nil, r.Server.Claim("default", "c0")} {
		if repair := r.check(claim, volume).Repair; repair.By == decision.ByNobody {
			told = append(told, message{text: repair.Why, claim: claim, volume: volume, again: func() []string { return []string{r.check(claim, r.Server.Volume("v0")).Repair.Why} }})
		}
	}
	if _, moving := volume.Annotations[reclaim.TransferAnnotation]; moving {
		moving := attempt{operation: "move", volume: "v0"}
		for _, text := range texts(r.try(moving)) {
			told = append(told, r.messageOf(text, moving, volume))
		}
	}
	opening := attempt{operation: "open", volume: "v0"}
	warned := func() (texts []string) {
		_, step := r.try(opening)
		for _, warning := range step.Warnings {
			texts = append(texts, warning.String())
		}
		return texts
	}
	for _, text := range warned() {
		told = append(told, message{text: text, volume: volume, again: warned})
	}
	return told
}

// untold promises that the same is not told again, and that the storage is there that was, unless the policy says otherwise.
func (r *reader) untold(a message, volume *corev1.PersistentVolume) promise {
	gone := r.goes()
	return func() string {
		now := r.Server.Volume(volume.Name)
		switch {
		case slices.Contains(a.again(), a.text):
			return "the same is told again"
		case gone(volume) && (now == nil || now.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain):
			return "its storage is gone"
		}
		return ""
	}
}

// leaves promises that the volume is gone, or kept by nothing but finalizers of others and a claim that is bound to it.
func (r *reader) leaves(volume *corev1.PersistentVolume, others promise) promise {
	return func() string {
		now := r.Server.Volume(volume.Name)
		switch {
		case now == nil || now.UID != volume.UID:
			return others()
		case now.DeletionTimestamp == nil, slices.Contains(now.Finalizers, reclaim.InTreeFinalizer),
			r.Controllers[0].Rules.Protection == decision.ProtectionOn && now.Status.Phase != corev1.VolumeBound && slices.Contains(now.Finalizers, reclaim.VolumeProtection):
			return fmt.Sprintf("it is still there, %s, with finalizers %v", now.Status.Phase, now.Finalizers)
		}
		return others()
	}
}

// keepStorage sets the policy to Retain: the volume goes, and its storage stays.
func keepStorage(r *reader, a message) promise {
	r.editVolume("keeps", obj.VolumeKey(a.volume.Name), WithPolicy(corev1.PersistentVolumeReclaimRetain))
	return r.leaves(a.volume, r.stay([]*corev1.PersistentVolume{a.volume}))
}

// endDestroyed deletes a volume that has no storage any more, or gives it storage.
func endDestroyed(r *reader, a message) promise {
	if r.oneIn(2) {
		r.remove(obj.VolumeKey(a.volume.Name))
		return r.leaves(a.volume, func() string { return "" })
	}
	delete(r.deleted, a.volume.UID)
	return r.forget(a)
}

// lookAfterDeleter deletes a volume that has no storage any more, and lets one that has be used.
func lookAfterDeleter(r *reader, a message) promise {
	if _, gone := r.deleted[a.volume.UID]; !gone || r.runsHooks() {
		return lookAfterRecycler(r, a)
	}
	r.editVolume("keeps", obj.VolumeKey(a.volume.Name), WithPolicy(corev1.PersistentVolumeReclaimRetain))
	r.remove(obj.VolumeKey(a.volume.Name))
	r.editVolume("has looked at", obj.VolumeKey(a.volume.Name), withoutAnnouncement)
	return r.leaves(a.volume, func() string { return "" })
}

// lookAfterRecycler lets the volume be used, whatever is left on it, once nobody is at work on it.
func lookAfterRecycler(r *reader, a message) promise {
	if r.runsHooks() {
		return nil
	}
	return r.forget(a)
}

// lookAfterAnyone lets a volume be used that has its storage.
func lookAfterAnyone(r *reader, a message) promise {
	announcement, _ := reclaim.AnnouncementOf(r.Server.Volume(a.volume.Name))
	if _, gone := r.deleted[a.volume.UID]; gone && !announcement.Recycles {
		return nil // it says nothing of that
	}
	return lookAfterRecycler(r, a)
}

// forget removes the announcement. A claim that was told gets the volume, unless it has another, beside which this one is reserved for it.
func (r *reader) forget(a message) promise {
	r.editVolume("has looked at", obj.VolumeKey(a.volume.Name), withoutAnnouncement)
	ended := r.untold(a, a.volume)
	if a.claim == nil || a.claim.Spec.VolumeName != "" && a.claim.Spec.VolumeName != a.volume.Name {
		return ended
	}
	return r.has(obj.KeyOf(a.claim), a.claim.UID, a.volume.Name, ended)
}

func withoutAnnouncement(v *corev1.PersistentVolume) {
	delete(v.Annotations, reclaim.AnnouncementAnnotation)
}

// removeToken removes the announcement: the volume is reclaimed as its policy says.
func removeToken(r *reader, a message) promise {
	ended := r.forget(a)
	policy := a.volume.Spec.PersistentVolumeReclaimPolicy
	return func() string {
		now := r.Server.Volume(a.volume.Name)
		if policy == corev1.PersistentVolumeReclaimRecycle && now != nil && now.Spec.ClaimRef != nil && now.Spec.ClaimRef.UID == a.volume.Spec.ClaimRef.UID {
			return "it is not recycled"
		}
		if policy == corev1.PersistentVolumeReclaimDelete {
			return r.leaves(a.volume, func() string { return "" })()
		}
		return ended()
	}
}

// createAgain creates another volume for the storage of one that was deleted in a transfer, and the claim that was to have it.
func createAgain(r *reader, a message) promise {
	if now := r.Server.Volume(a.volume.Name); now != nil {
		a.volume = now // pre-bound to that claim meanwhile
	}
	r.end(obj.VolumeKey(a.volume.Name))
	stays := r.stay([]*corev1.PersistentVolume{a.volume})
	made := bindingtest.Volume(a.volume.Name+"-again", "5Gi", OnHostPath, WithPolicy(corev1.PersistentVolumeReclaimRetain))
	made.Spec.ClaimRef = a.volume.Spec.ClaimRef.DeepCopy()
	made.Spec.AccessModes, made.Spec.VolumeMode = a.volume.Spec.AccessModes, a.volume.Spec.VolumeMode
	r.create(made)
	heir := bindingtest.Claim(made.Spec.ClaimRef.Namespace, made.Spec.ClaimRef.Name, "1Gi", RequestingClass(new("")), Naming(made.Name))
	heir.Spec.AccessModes, heir.Spec.VolumeMode = made.Spec.AccessModes, made.Spec.VolumeMode
	stored, err := r.Server.Create(context.Background(), heir)
	if r.note("people create %s: %v", heir.Name, err); err != nil {
		return stays // there is one of that name
	}
	return r.has(obj.KeyOf(heir), stored.GetUID(), made.Name, stays)
}

// awardToThis gives the volume that several claims are bound to to the one that was told.
func awardToThis(r *reader, a message) promise {
	volume := r.volumeIn(a.text)
	r.editVolume("awards", obj.VolumeKey(volume.Name), RefersTo(a.claim.Namespace, a.claim.Name, a.claim.UID))
	if a.claim.DeletionTimestamp != nil || volume.DeletionTimestamp != nil {
		return nil
	}
	return r.has(obj.KeyOf(a.claim), a.claim.UID, volume.Name, func() string { return "" })
}
