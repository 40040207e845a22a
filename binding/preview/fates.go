package preview

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// fates are what becomes of the storage of the volumes that were written.
func (w *world) fates(keys []obj.Key) []StorageFate {
	done := map[string]ran{}
	for _, call := range w.ran {
		done[call.volume.Name] = call
		if _, known := w.touched[obj.VolumeKey(call.volume.Name)]; !known {
			keys = append(keys, obj.VolumeKey(call.volume.Name)) // it was never stored
		}
	}
	var fates []StorageFate
	for _, key := range keys {
		if key.Kind != obj.KindVolume {
			continue
		}
		before, _ := w.touched[key].(*corev1.PersistentVolume)
		after, _ := w.now(key).(*corev1.PersistentVolume)
		fate := w.fateOf(before, after)
		if call, ran := done[key.Name]; ran {
			fate = StorageFate{Fate: call.fate, By: call.by, Claim: claimOf(call.volume), Why: "its claim is gone"}
		}
		if fate.Fate != "" && fate != w.fateOf(before, before) {
			fate.Volume = key.Name
			fates = append(fates, fate)
		}
	}
	return fates
}

// fateOf is what is in store for the storage of a volume, by the decision of the controller; zero if it is in use or
// free.
func (w *world) fateOf(before, after *corev1.PersistentVolume) StorageFate {
	if after == nil {
		if before == nil {
			return StorageFate{}
		}
		return StorageFate{Fate: Stranded, Claim: claimOf(before), Why: "its volume is gone and nobody deletes it"}
	}
	if phase := after.Status.Phase; phase != corev1.VolumeReleased && phase != corev1.VolumeFailed {
		return StorageFate{}
	}
	policy := after.Spec.PersistentVolumeReclaimPolicy
	decision := reclaim.Decide(after, w.reclaimRules())
	fate := StorageFate{Fate: Kept, Claim: claimOf(after), Why: decision.Message}
	switch {
	case decision.Verb == reclaim.StandDown && policy == corev1.PersistentVolumeReclaimDelete:
		fate.Fate, fate.By = Deleted, decision.By
	case w.awaitsDetaching(decision.Verb, after):
		fate.Fate, fate.By, fate.Once = Deleted, decision.Hook, "it is detached from node "+strings.Join(w.nodesOf(after), ", ")
		if decision.Verb == reclaim.RunRecycler {
			fate.Fate = Scrubbed
		}
	case decision.Verb == reclaim.StandDown:
		fate.Why = fmt.Sprintf("its reclaim policy is %s", policy)
	case decision.Verb == reclaim.RunRecycler:
		fate.Why = "it is scrubbed once no pod uses it: " + strings.Join(w.podsBy(after.Spec.ClaimRef), ", ")
	}
	return fate
}

// awaitsDetaching reports whether the deleter or recycler of a volume is held up by its attachments, and by nothing else
// (R3, R4).
func (w *world) awaitsDetaching(verb reclaim.Verb, volume *corev1.PersistentVolume) bool {
	runs := verb == reclaim.RunDeleter || verb == reclaim.RunRecycler && len(w.podsBy(volume.Spec.ClaimRef)) == 0
	return runs && len(w.nodesOf(volume)) > 0
}

// podsBy are the pods that keep a volume from being scrubbed (R4).
func (w *world) podsBy(ref *corev1.ObjectReference) (names []string) {
	if ref == nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = ref.Namespace, ref.Name
	w.podsOn(claim)
	for _, pod := range reclaim.BlockRecycling(w.users[obj.KeyOf(claim)], ref.Namespace, ref.Name) {
		names = append(names, bindingtest.PodKey(pod.Namespace, pod.Name).String())
	}
	return names
}

func (w *world) reclaimRules() reclaim.Rules {
	migrations := w.rules.Migrations
	if migrations == nil {
		migrations = storageclass.InTreeMigrations()
	}
	hooks := w.rules.Hooks
	return reclaim.Rules{Migrations: migrations, Deleters: hooks.Deleters, SourceDeleters: hooks.SourceDeleters, Recyclers: hooks.Recyclers}
}

// claimOf is the claim that has or had the volume; "" if none did.
func claimOf(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}
