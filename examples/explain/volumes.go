package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// volumeGroups describes each volume that nobody can simply use.
func (c *cluster) volumeGroups() []*volumeGroup {
	groups := []*volumeGroup{}
	known := map[string]*volumeGroup{}
	for i, volume := range c.Volumes {
		c.progress.tell("looked at volumes:", i, len(c.Volumes))
		group := c.stuck(volume)
		if group == nil {
			continue
		}
		key := group.groupKey()
		if first := known[key]; first != nil {
			first.Alike = append(first.Alike, group.Volume)
			continue
		}
		known[key] = group
		groups = append(groups, group)
	}
	return groups
}

// stuck describes a volume that nobody can simply use; nil if it is none.
func (c *cluster) stuck(volume *corev1.PersistentVolume) *volumeGroup {
	group := describe(volume)
	at, deleting := volume.Status.Phase, volume.DeletionTimestamp != nil
	decision := reclaim.Decide(volume, reclaim.Options{Migrations: storageclass.InTreeMigrations()})
	switch {
	case deleting:
		group.Why, group.Finalizers = "it is being deleted: "+keptBy(volume), volume.Finalizers
		if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			group.Operations = []operation{setRetain(volume)}
		}
	case at == corev1.VolumeReleased:
		group.Why, group.Operations = "its claim is gone, and "+decision.Message, c.operations(volume)
	case at == corev1.VolumeFailed:
		group.Why, group.Operations = "reclaiming it failed: "+orElse(volume.Status.Message, decision.Message), c.operations(volume)
	default:
		return nil
	}
	c.addAttachments(group)
	if announcement, announced := reclaim.AnnouncementOf(volume); announced && !announcement.Done && group.Policy != string(corev1.PersistentVolumeReclaimRetain) {
		group.Why += "; " + announcement.Notice()
	}
	for _, claim := range c.requestedBy(volume) {
		group.Why += "; " + claim.String() + " requests it by name"
	}
	return group
}

// addAttachments adds which nodes a stuck volume is attached to. Its storage is not reclaimed before it is detached.
func (c *cluster) addAttachments(group *volumeGroup) {
	attachments, _ := c.AttachmentsOf(group.Volume.Name)
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

// requestedBy returns the claims that are Bound to the volume, or else the one that names it and has the UID in its claimRef, whatever name stands
// there, or else the one in its claimRef, if that names the volume: an older one of that name may have had it.
func (c *cluster) requestedBy(volume *corev1.PersistentVolume) []obj.Key {
	if owners := c.Owners(volume.Name); len(owners) > 0 {
		return owners
	}
	if claimant := c.Claimant(volume); claimant != (obj.Key{}) {
		return []obj.Key{claimant}
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		if claim, _ := c.Claim(ref.Namespace, ref.Name); claim != nil && claim.Spec.VolumeName == volume.Name {
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

// keptBy says what keeps a volume that is being deleted.
func keptBy(volume *corev1.PersistentVolume) string {
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

// groupKey is equal for volumes whose answers differ in names only.
func (g *volumeGroup) groupKey() string {
	said := append([]string{g.Phase, g.Policy, g.Why}, g.Finalizers...)
	for _, operation := range g.Operations {
		said = append(said, operation.String())
	}
	of := g.Was.Namespace
	names := strings.NewReplacer(g.Volume.Name, "VOLUME", g.Was.String(), "CLAIM", of+"/"+g.Was.Name, "CLAIM", "pods/"+of, "PODS", "namespace "+of, "NAMESPACE")
	return names.Replace(strings.Join(said, "\n"))
}
