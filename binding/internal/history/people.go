package history

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// people do one thing, on one of a few volumes, claims, classes and pods. What the server refuses does not happen.
func (h *History) people() {
	volume, claim := h.anyVolume(), h.anyClaim()
	if made := h.Server.Volume(h.madeFor(claim)); made != nil && h.oneIn(3) {
		volume, claim = obj.VolumeKey(made.Name), h.anyClaim()
	}
	switch h.IntN(30) {
	case 0, 1, 2, 3:
		h.create(h.newVolume())
	case 4, 5, 6, 7:
		h.create(h.newClaim())
	case 8, 9:
		h.remove(claim)
	case 10:
		h.remove(volume)
	case 11:
		h.editVolume("reserves", volume, h.reserve)
	case 12:
		h.editVolume("frees", volume, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
	case 13:
		h.editVolume("clears the UID of", volume, clearUID)
	case 14:
		h.editVolume("takes bound-by-controller off", volume, func(v *corev1.PersistentVolume) { delete(v.Annotations, testkit.BoundBy) })
	case 15:
		h.editVolume("changes the policy of", volume, func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = h.policy() })
	case 16:
		h.editVolume("resizes", volume, func(v *corev1.PersistentVolume) { v.Spec.Capacity = testkit.Storage(h.size()) })
	case 17:
		h.editClaim("takes an annotation off", claim, func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, h.oneOf(testkit.BoundBy, testkit.Completed))
		})
	case 18:
		h.editClaim("selects a node for", claim, func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, testkit.SelectedNode, "node")
		})
	case 19:
		h.create(h.newClass())
	case 20:
		h.remove(obj.Key{Kind: obj.KindClass, Name: h.className()})
	case 21:
		h.startOrEndPod(claim)
	case 22:
		h.provision(claim)
	case 23:
		h.removeFinalizers(volume, claim)
	case 24:
		h.editClaim("forges annotations of", claim, h.forge)
	case 25:
		forged := h.newClaim()
		forged.Spec.VolumeName = volume.Name
		h.forge(forged)
		h.create(forged)
	case 26:
		h.replace(volume)
	case 27:
		h.editVolume("applies a manifest without claimRef to", volume, clearName)
	case 28:
		h.editVolume("hands over", volume, func(v *corev1.PersistentVolume) { h.reassign(v, claim) })
	case 29:
		h.editVolume("applies a manifest of before to", volume, ofBefore)
	}
	h.judgeCalls("people")
}

func (h *History) oneOf(texts ...string) string { return texts[h.IntN(len(texts))] }

func (h *History) anyVolume() obj.Key {
	return obj.VolumeKey(fmt.Sprintf("v%d", h.IntN(h.volumes)))
}

// madeFor returns the name of what a provisioner makes for the claim that has a name.
func (h *History) madeFor(key obj.Key) string {
	if claim := h.Server.Claim(key.Namespace, key.Name); claim != nil {
		return "pvc-" + string(claim.UID)
	}
	return ""
}

func (h *History) anyClaim() obj.Key {
	return obj.ClaimKey("default", fmt.Sprintf("c%d", h.IntN(h.claims)))
}

func (h *History) size() string      { return h.oneOf("1Gi", "1Gi", "2Gi") }
func (h *History) className() string { return h.oneOf("fast", "local", "standard") }

func (h *History) policy() corev1.PersistentVolumeReclaimPolicy {
	return corev1.PersistentVolumeReclaimPolicy(h.oneOf("Retain", "Retain", "Delete", "Recycle"))
}

func (h *History) create(object obj.Object) {
	_, err := h.Server.Create(context.Background(), object)
	h.note("people create %T %s: %v", object, object.GetName(), err)
}

func (h *History) remove(key obj.Key) {
	err := h.Server.Delete(context.Background(), key, metav1.DeleteOptions{})
	h.note("people delete %s: %v", key, err)
}

// nobodys is the UID of a claim that had a volume once, as an old manifest has it.
const nobodys = "uid-before"

// replace removes a volume by force and makes it again, after a while: as another one, or from a manifest of when an earlier claim of that name had it.
func (h *History) replace(volume obj.Key) {
	was := h.Server.Volume(volume.Name)
	h.remove(volume)
	h.removeFinalizers(volume, obj.Key{})
	h.judgeCalls("people")
	for range h.IntN(12) {
		h.step()
	}
	again := h.newVolume()
	again.Name = volume.Name
	if was != nil && was.Spec.ClaimRef != nil && h.oneIn(2) {
		again.Annotations, again.Spec = was.Annotations, was.Spec
		again.Spec.ClaimRef.UID = nobodys
		delete(again.Annotations, reclaim.TransferAnnotation) // which is of the former volume, so that R7's operations end with an error
	}
	h.create(again)
}

func (h *History) newVolume() *corev1.PersistentVolume {
	volume := bindingtest.Volume(h.anyVolume().Name, h.size())
	if h.oneIn(4) {
		volume.Spec.AccessModes = append(volume.Spec.AccessModes, corev1.ReadWriteMany)
	}
	if h.oneIn(3) {
		volume.Spec.StorageClassName = h.className()
	}
	if h.oneIn(5) {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, testkit.ProvisionedBy, h.oneOf("csi.example.com", "kubernetes.io/glusterfs", "kubernetes.io/cinder"))
	}
	if h.oneIn(12) {
		volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	volume.Spec.PersistentVolumeReclaimPolicy = h.policy()
	if h.oneIn(4) {
		h.reserve(volume)
	}
	return volume
}

func (h *History) reserve(volume *corev1.PersistentVolume) {
	claim := h.anyClaim()
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name}
}

// reassign writes the whole claimRef of a claim that is there, as a volume populator does.
func (h *History) reassign(volume *corev1.PersistentVolume, to obj.Key) {
	if claim := h.Server.Claim(to.Namespace, to.Name); claim != nil {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion}
	}
}

func clearUID(volume *corev1.PersistentVolume) {
	if volume.Spec.ClaimRef != nil {
		volume.Spec.ClaimRef.UID = ""
	}
}

// clearName leaves of a claimRef what server-side apply does, where another field manager wrote the UID.
func clearName(volume *corev1.PersistentVolume) {
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		ref.Namespace, ref.Name = "", ""
	}
}

// ofBefore leaves of a volume what it was made with: no claimRef, and nothing of what controllers have written on it.
func ofBefore(volume *corev1.PersistentVolume) {
	volume.Spec.ClaimRef, volume.Finalizers = nil, nil
	for _, annotation := range []string{testkit.BoundBy, reclaim.AnnouncementAnnotation, reclaim.TransferAnnotation} {
		delete(volume.Annotations, annotation)
	}
}

func (h *History) newClaim() *corev1.PersistentVolumeClaim {
	claim := bindingtest.Claim("default", h.anyClaim().Name, h.size())
	if h.oneIn(5) {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	switch h.IntN(6) {
	case 0, 1, 2:
		claim.Spec.StorageClassName = new("")
	case 3, 4:
		claim.Spec.StorageClassName = new(h.className())
	}
	if h.oneIn(5) {
		claim.Spec.VolumeName = h.anyVolume().Name
	}
	return claim
}

// forge writes what a controller writes on a claim that it has bound. A tenant can do that, but for the status.
func (h *History) forge(claim *corev1.PersistentVolumeClaim) {
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, testkit.Completed, "yes")
	if h.oneIn(2) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, testkit.BoundBy, "yes")
	}
}

func (h *History) newClass() *storagev1.StorageClass {
	class := bindingtest.Class(h.className())
	class.Provisioner = h.oneOf("kubernetes.io/no-provisioner", "csi.example.com", "kubernetes.io/cinder")
	if class.Name == "local" {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if class.Name == "standard" {
		testkit.DefaultClass(class)
	}
	return class
}

func (h *History) editVolume(verb string, key obj.Key, edit testkit.VolumeEdit) {
	if volume := h.Server.Volume(key.Name); volume != nil {
		edit(volume)
		_, err := h.Server.Update(context.Background(), volume)
		h.note("somebody %s %s: %v", verb, key, err)
	}
}

func (h *History) editClaim(verb string, key obj.Key, edit testkit.ClaimEdit) {
	if claim := h.Server.Claim(key.Namespace, key.Name); claim != nil {
		edit(claim)
		_, err := h.Server.Update(context.Background(), claim)
		h.note("somebody %s %s: %v", verb, key, err)
	}
}

// startOrEndPod starts a pod that uses the claim, or ends it.
func (h *History) startOrEndPod(claim obj.Key) {
	name := fmt.Sprintf("pod-%d", h.IntN(h.pods))
	if h.oneIn(2) {
		h.create(bindingtest.Pod("default", name, h.oneOf("", "node"), claim.Name))
		return
	}
	h.remove(bindingtest.PodKey("default", name))
}

// provision does what an external provisioner does once it was asked.
func (h *History) provision(key obj.Key) {
	claim := h.Server.Claim(key.Namespace, key.Name)
	if claim == nil || claim.Annotations[testkit.Provisioner] == "" || claim.Spec.VolumeName != "" {
		return
	}
	made := bindingtest.Volume("pvc-"+string(claim.UID), "2Gi", testkit.VolumeNote(testkit.ProvisionedBy, claim.Annotations[testkit.Provisioner]))
	made.Spec.AccessModes = claim.Spec.AccessModes
	made.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	if claim.Spec.StorageClassName != nil {
		made.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	testkit.RefersTo(claim.Namespace, claim.Name, claim.UID)(made)
	made.Spec.ClaimRef.Kind, made.Spec.ClaimRef.APIVersion = "PersistentVolumeClaim", "v1"
	h.create(made)
}

// removeFinalizers takes the finalizers off what is being deleted.
func (h *History) removeFinalizers(volume, claim obj.Key) {
	if v := h.Server.Volume(volume.Name); v != nil && v.DeletionTimestamp != nil {
		h.editVolume("lets go of", volume, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
	}
	if c := h.Server.Claim(claim.Namespace, claim.Name); c != nil && c.DeletionTimestamp != nil {
		h.editClaim("lets go of", claim, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	}
}
