package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// volumeGroups looks at every volume that nobody can simply use.
func (w *world) volumeGroups() []*volumeGroup {
	groups := []*volumeGroup{}
	known := map[string]*volumeGroup{}
	for i, volume := range w.Volumes {
		w.progress.tell("looked at volumes:", i, len(w.Volumes))
		group := w.stuck(volume)
		if group == nil {
			continue
		}
		likeness := group.likeness()
		if first := known[likeness]; first != nil {
			first.Alike = append(first.Alike, group.Volume)
			continue
		}
		known[likeness] = group
		groups = append(groups, group)
	}
	return groups
}

// stuck says what becomes of a volume that nobody can simply use; nil if it is none.
func (w *world) stuck(volume *corev1.PersistentVolume) *volumeGroup {
	group := describe(volume)
	at, deleting := volume.Status.Phase, volume.DeletionTimestamp != nil
	decision := reclaim.Decide(volume, reclaim.Rules{Migrations: storageclass.InTreeMigrations()})
	switch {
	case deleting:
		group.Why, group.Finalizers = "it is being deleted: "+heldBy(volume), volume.Finalizers
		if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			group.Can = []choice{keep(volume)}
		}
	case at == corev1.VolumeReleased:
		group.Why, group.Can = "its claim is gone, and "+decision.Message, w.choices(volume)
	case at == corev1.VolumeFailed:
		group.Why, group.Can = "reclaiming it failed: "+orElse(volume.Status.Message, decision.Message), w.choices(volume)
	default:
		return nil
	}
	w.attached(group)
	for _, claim := range w.wantedBy(volume) {
		group.Why += "; " + claim.String() + " asks for it by name"
	}
	return group
}

// attached says of a stuck volume which nodes it is attached to. Whoever reclaims its storage waits for that to end.
func (w *world) attached(group *volumeGroup) {
	attachments, _ := w.AttachmentsOf(group.Volume.Name)
	for _, attachment := range attachments {
		group.Attached = append(group.Attached, attachment.Spec.NodeName)
	}
	slices.Sort(group.Attached)
	group.Attached = slices.Compact(group.Attached)
	if len(group.Attached) == 0 {
		return
	}
	group.Why += "; it is attached to node " + strings.Join(group.Attached, ", ")
	if group.Policy != string(corev1.PersistentVolumeReclaimRetain) {
		group.Why += ", and its storage stays until it is detached"
	}
}

// wantedBy are the claims that are Bound to the volume, or else the one in its claimRef, if it names the volume: an older
// one of that name may have had it.
func (w *world) wantedBy(volume *corev1.PersistentVolume) []obj.Key {
	if owners := w.Owners(volume.Name); len(owners) > 0 {
		return owners
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		if claim, _ := w.Claim(ref.Namespace, ref.Name); claim != nil && claim.Spec.VolumeName == volume.Name {
			return []obj.Key{obj.KeyOf(claim)}
		}
	}
	return nil
}

func describe(volume *corev1.PersistentVolume) *volumeGroup {
	group := &volumeGroup{
		Volume: obj.VolumeKey(volume.Name),
		Phase:  string(volume.Status.Phase),
		Policy: string(volume.Spec.PersistentVolumeReclaimPolicy),
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		group.Was = obj.ClaimKey(ref.Namespace, ref.Name)
	}
	return group
}

// heldBy says what keeps a volume that is being deleted.
func heldBy(volume *corev1.PersistentVolume) string {
	switch {
	case len(volume.Finalizers) == 0:
		return "nothing keeps it"
	case volume.Status.Phase == corev1.VolumeBound && slices.Contains(volume.Finalizers, reclaim.VolumeProtection):
		return "it goes once it is not bound any more"
	}
	return "its finalizers keep it, " + strings.Join(volume.Finalizers, ", ")
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// likeness is the same for volumes of which there is the same to say but for names.
func (g *volumeGroup) likeness() string {
	said := append([]string{g.Phase, g.Policy, g.Why}, g.Finalizers...)
	for _, choice := range g.Can {
		said = append(said, choice.String())
	}
	of := g.Was.Namespace
	names := strings.NewReplacer(g.Volume.Name, "VOLUME", g.Was.String(), "CLAIM", of+"/"+g.Was.Name, "CLAIM", "pods/"+of, "PODS", "namespace "+of, "NAMESPACE")
	return names.Replace(strings.Join(said, "\n"))
}
