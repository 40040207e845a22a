package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// advices returns every sentence that CheckPair, the operations and the events can tell, the first row that fits first.
func advices() []advice {
	return slices.Concat([]advice{
		{"^" + quotes, nil},
	}, keptAdvices(), []advice{
		{"set its claimRef to the one whose data it is, with namespace, name and UID: ", award},
		// CheckPair
		{"^the controller mends it: ", leaveIt},
		{"^volume .*, which the claim names, does not exist; set reclaim policy Retain on every volume .*; create a volume with reclaim policy Retain, no annotation, .* exactly the name .* with that the claim has it again$", restore},
		{"^the claim was bound and names no volume: set reclaim policy Retain .* then spec.volumeName .* if there is no such volume, delete the claim and create it anew$", nameVolume},
		{"^the volume serves another claim, .* set reclaim policy Retain on every volume .* then delete the claim and create it anew without that name$", startAnew},
		{"with (the|this) claim's UID in (its claimRef the two are bound again|claimRef it is this one's)(, once the annotation .* is removed)?$", repoint},
		{"^the claim was never bound to the volume, and cannot be$", part},
		{"^each finalizer is removed by the component that added it, once its reason is gone", letGoOfAll},
		{"^((VolumeFailedDelete|VolumeFailedRecycle): )?volume .* was deleted before its claim, and may go at any time, .* gives what is on it to the next claim$", nil},
		{"^neither the claim nor the volume refers to the other$", nil},
		{"^the claim or the volume is being deleted$", nil},
		{"^the volume does not fit the claim: ", nil},
		{"^the volume was bound to pvc/.* too$", nil},
		// what the Controller says of a pair that it leaves alone
		{"^the volume .* that the claim names (does not fit it|belongs to another claim)", nil},
		{"^no volume fits and the claim names no storage class: ", nil},
		{"^waiting for a pod that uses the claim|^waiting for its pods to be scheduled", nil},
		{"^volume .* is bound to claim .* is left as it is until that changes or the claim is gone$", nil},
		{"^volume .* has volume mode .*, its claim .* (asks for|requests)", nil},
		{"^it or its claim is being deleted: the binding is not finished", nil},
		{"^no volume fits, and ", nil},
		{"^volume .* does not exist$", nil},
		{"^(available|bound|lost|released; .*)$", nil},
		{"^bound to ", nil},
		{"^its storage is deleted; finalizers of others keep the volume$", nil},
		{"^volume .* is bound to claim .* is left as it is until a later version is read$", nil},
		{"^volume .* is being deleted, and is kept until its claim .* is, which names no volume$", nil},
		{"^the volume .* may have lost its storage, and is to be deleted before it is provisioned anew: ", nil},
		{"^the claim is being deleted: nothing new is begun for it$", nil},
		{"^(CSI driver|external provisioner) .* (reclaims|deletes) it$|^external provisioner .*, which made it, deletes it$", nil},
		{"^the volume cannot be reclaimed: ", nil},
		{"^Volume is used by pods: ", nil},
		// events
		{"^(ExternalProvisioning: )?waiting for the provisioner .*, or for an administrator to reserve one that fits \\(claimRef with namespace and name\\)$", reserveByHand},
		{"^(ProvisioningCleanupFailed: )?what provisioner .* run a controller that has it, or delete the storage by hand and then take the finalizer .* off the claim$", cleanUpByHand},
		{"^(FailedBinding|WaitForFirstConsumer|WaitForPodScheduled|VolumeMismatch|ProvisioningFailed|ClaimLost|ClaimMisbound): ", nil},
		{"^(VolumeDelete|VolumeFailedDelete|VolumeFailedRecycle|VolumeRecycled|VolumeUnknownReclaimPolicy): ", nil},
	}, operationAdvices())
}

// leaveIt leaves it to the Controller, which mends it, and then the same is not said again.
func leaveIt(r *reader, a message) promise {
	return func() string {
		if again := a.again(); strings.HasPrefix(again[0], a.text) {
			return "it did not"
		}
		return ""
	}
}

// keepHeld sets the policy Retain on every volume that is held by the UID.
func (r *reader) keepHeld(uid types.UID) (held []*corev1.PersistentVolume) {
	for _, volume := range r.snapshot().Volumes {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.UID == uid {
			r.editVolume("keeps", obj.VolumeKey(volume.Name), func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			held = append(held, volume)
		}
	}
	return held
}

// runsHooks reports whether the storage of some volume may go whatever people do now.
func (r *reader) runsHooks() bool {
	for _, m := range r.Controllers {
		for _, running := range m.Running {
			if running.Action.RunsHook() {
				return true
			}
		}
	}
	return false
}

// goes begins to watch, and tells whose storage has gone since.
func (r *reader) goes() func(volume *corev1.PersistentVolume) bool {
	before := maps.Clone(r.deleted)
	return func(volume *corev1.PersistentVolume) bool {
		_, was := before[volume.UID]
		_, is := r.deleted[volume.UID]
		return is && !was
	}
}

// stay promises that the storage of the volumes is untouched.
func (r *reader) stay(volumes []*corev1.PersistentVolume) promise {
	late, gone := r.runsHooks(), r.goes()
	return func() string {
		for _, volume := range volumes {
			if gone(volume) && !late {
				return "the storage of " + volume.Name + " is gone"
			}
		}
		return ""
	}
}

// has promises that the claim is Bound to the volume, whose storage is untouched.
func (r *reader) has(claim obj.Key, uid types.UID, volume string, others promise) promise {
	gone := r.goes()
	return func() string {
		now, its := r.Server.Claim(claim.Namespace, claim.Name), r.Server.Volume(volume)
		switch {
		case now == nil || now.UID != uid || its == nil:
			return fmt.Sprintf("%s or pv/%s is gone", claim, volume)
		case now.Status.Phase != corev1.ClaimBound || now.Spec.VolumeName != volume || phase.ClaimRefStateOf(its, now) != phase.ClaimRefBound || its.Status.Phase != corev1.VolumeBound:
			return fmt.Sprintf("%s is %s and names %q, and pv/%s is %s", claim, now.Status.Phase, now.Spec.VolumeName, volume, its.Status.Phase)
		}
		if gone(its) {
			return "the storage of " + volume + " is gone"
		}
		return others()
	}
}

// restore creates the volume that was said, and leaves to chance what was not.
func restore(r *reader, a message) promise {
	held := r.keepHeld(a.claim.UID)
	for _, volume := range held {
		if r.oneIn(3) { // it stands for the storage that the claim had
			r.end(obj.VolumeKey(volume.Name))
		}
	}
	made := a.action.Volume.DeepCopy()
	OnHostPath(made)
	if r.oneIn(2) {
		made.Spec.Capacity = Storage("5Gi")
	}
	if r.oneIn(3) {
		made.Spec.StorageClassName = r.className()
	}
	if r.oneIn(3) {
		made.Labels = map[string]string{"restored": "yes"}
	}
	if r.oneIn(3) {
		made.Spec.ClaimRef.Kind, made.Spec.ClaimRef.APIVersion = "", ""
	}
	if _, err := r.Server.Create(context.Background(), made); err != nil {
		r.note("it cannot be created: %v", err)
		return nil
	}
	r.note("people create %s: %s", made.Name, a.action)
	return r.has(obj.KeyOf(a.claim), a.claim.UID, made.Name, r.stay(held))
}

// nameVolume writes the name of any volume that there is with the claim's UID; without one the claim is made anew.
func nameVolume(r *reader, a message) promise {
	held := r.keepHeld(a.claim.UID)
	key := obj.KeyOf(a.claim)
	if len(held) == 0 {
		return r.anew(a.claim)
	}
	name := held[r.IntN(len(held))].Name
	r.editClaim("names "+name+" in", key, Naming(name))
	return r.has(key, a.claim.UID, name, r.stay(held))
}

// anew deletes the claim and creates it again, without a volume of its own: it is not Lost then.
func (r *reader) anew(claim *corev1.PersistentVolumeClaim) promise {
	key := obj.KeyOf(claim)
	r.end(key)
	r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = claim.Spec.StorageClassName }))
	return func() string {
		now := r.Server.Claim(key.Namespace, key.Name)
		if now == nil || now.UID == claim.UID || now.Status.Phase == corev1.ClaimLost {
			return fmt.Sprintf("%s is not as new: %v", key, now)
		}
		return ""
	}
}

// startAnew gives up the claim for another volume: nobody else's is touched, and what it held stays.
func startAnew(r *reader, a message) promise {
	held := r.keepHeld(a.claim.UID)
	stays, fresh := r.stay(held), r.anew(a.claim)
	owner := a.volume.Spec.ClaimRef
	return func() string {
		now := r.Server.Volume(a.volume.Name)
		if owner != nil && owner.UID != "" && r.Server.Claim(owner.Namespace, owner.Name) != nil && (now == nil || now.Spec.ClaimRef == nil || now.Spec.ClaimRef.Name != owner.Name) {
			if was := r.Server.Claim(owner.Namespace, owner.Name); was.UID == owner.UID && was.Spec.VolumeName == a.volume.Name {
				return "the volume was taken from " + owner.Name
			}
		}
		if wrong := stays(); wrong != "" {
			return wrong
		}
		return fresh()
	}
}

// write makes the write of a repair.
func (r *reader) write(a message) bool {
	_, err := r.Server.Update(context.Background(), a.action.Volume)
	r.note("people do %s: %v", a.action, err)
	return err == nil
}

func repoint(r *reader, a message) promise {
	if _, announced := reclaim.AnnouncementOf(a.volume); !r.write(a) || announced {
		return nil
	}
	return r.has(obj.KeyOf(a.claim), a.claim.UID, a.volume.Name, func() string { return "" })
}

// award gives a volume that several claims are bound to to one of them.
func award(r *reader, a message) promise {
	volume := a.volume
	if volume == nil {
		volume = r.Server.Volume(a.claim.Spec.VolumeName)
	}
	owners := r.snapshot().Owners(volume.Name)
	key := owners[r.IntN(len(owners))]
	claim := r.Server.Claim(key.Namespace, key.Name)
	r.editVolume("awards", obj.VolumeKey(volume.Name), RefersTo(key.Namespace, key.Name, claim.UID))
	if claim.DeletionTimestamp != nil || volume.DeletionTimestamp != nil {
		return nil
	}
	return r.has(key, claim.UID, volume.Name, func() string { return "" })
}

// part takes the volume from the claim, whose storage is not touched by that.
func part(r *reader, a message) promise {
	if !r.write(a) {
		return nil
	}
	gone := r.goes()
	return func() string {
		now := r.Server.Volume(a.volume.Name)
		if now == nil || gone(a.volume) {
			return "it is gone"
		}
		if ref := now.Spec.ClaimRef; ref != nil && ref.UID == a.claim.UID {
			return "the claim holds it again"
		}
		return ""
	}
}

// retainFirst sets the policy: nothing is said of what is left, but that it stays, and one can look.
func retainFirst(r *reader, a message) promise {
	late, gone := r.runsHooks(), r.goes()
	r.editVolume("keeps", obj.VolumeKey(a.volume.Name), func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	return func() string {
		switch {
		case gone(a.volume) && !late:
			return "its storage is gone"
		case r.Server.Volume(a.volume.Name) != nil && slices.Contains(a.again(), a.text):
			return "the same is said again"
		}
		return ""
	}
}

// letGoOfAll ends the pods, and has the owner of each finalizer take it off where there is no reason for it any more.
func letGoOfAll(r *reader, a message) promise {
	for _, pod := range r.snapshot().Pods {
		r.remove(bindingtest.PodKey(pod.Namespace, pod.Name))
		_ = r.Server.Delete(context.Background(), bindingtest.PodKey(pod.Namespace, pod.Name), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	claim := a.claim != nil && a.claim.DeletionTimestamp != nil
	if claim {
		r.editClaim("lets go of", obj.KeyOf(a.claim), func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = leftOut(c.Finalizers, ClaimProtection, ProvisioningFinalizer)
		})
	}
	if a.volume != nil && a.volume.DeletionTimestamp != nil && a.volume.Status.Phase != corev1.VolumeBound {
		r.editVolume("lets go of", obj.VolumeKey(a.volume.Name), func(v *corev1.PersistentVolume) {
			v.Finalizers = leftOut(v.Finalizers, VolumeProtection, InTreeFinalizer, ExternalFinalizer)
		})
	}
	return func() string {
		if now := a.claim; claim && now != nil {
			if there := r.Server.Claim(now.Namespace, now.Name); there != nil && there.UID == now.UID {
				return fmt.Sprintf("the claim is still there, with finalizers %v", there.Finalizers)
			}
		}
		return ""
	}
}

func leftOut(list []string, these ...string) []string {
	return slices.DeleteFunc(list, func(one string) bool { return slices.Contains(these, one) })
}

// reserveByHand returns what an administrator does for a claim that waits for a provisioner: the claim is bound then, to that
// volume or to the one of the provisioner, if that was faster. All that is not said is open.
func reserveByHand(r *reader, a message) promise {
	name := "by-hand-" + string(a.claim.UID)
	if r.Server.Volume(name) != nil {
		return nil
	}
	made := bindingtest.Volume(name, "5Gi", RefersTo(a.claim.Namespace, a.claim.Name, ""), WithPolicy(r.policy()))
	made.Spec.AccessModes, made.Spec.VolumeMode = a.claim.Spec.AccessModes, a.claim.Spec.VolumeMode
	if r.oneIn(2) {
		metav1.SetMetaDataAnnotation(&made.ObjectMeta, ProvisionedBy, r.oneOf("csi.example.com", "other.example.com"))
	}
	if r.oneIn(3) {
		metav1.SetMetaDataAnnotation(&made.ObjectMeta, BoundBy, "yes")
	}
	made.Spec.StorageClassName = r.oneOf("", "fast", "another")
	r.create(made)
	return func() string {
		now, its := r.Server.Claim(a.claim.Namespace, a.claim.Name), r.Server.Volume(name)
		switch {
		case now == nil || now.UID != a.claim.UID || now.DeletionTimestamp != nil:
			return ""
		case now.Status.Phase != corev1.ClaimBound:
			return fmt.Sprintf("%s is %s", now.Name, now.Status.Phase)
		case its == nil:
			return "the volume is gone"
		}
		if _, gone := r.deleted[its.UID]; gone {
			return "its storage is gone"
		}
		return ""
	}
}

// cleanUpByHand takes the finalizer off, once what was made is deleted: then the claim is let go.
func cleanUpByHand(r *reader, a message) promise {
	key := obj.KeyOf(a.claim)
	r.editClaim("cleans up after", key, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = leftOut(c.Finalizers, ProvisioningFinalizer) })
	return func() string {
		now := r.Server.Claim(key.Namespace, key.Name)
		if now != nil && now.UID == a.claim.UID && slices.Contains(now.Finalizers, ProvisioningFinalizer) {
			return "the finalizer is there again"
		}
		return ""
	}
}
