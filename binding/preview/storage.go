package preview

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// storageEffects returns what becomes of the storage of the volumes that were written.
func (s *simulation) storageEffects(keys []obj.Key) []StorageEffect {
	done := map[string]hookRun{}
	for _, call := range s.hookRuns {
		done[call.volume.Name] = call
		if _, known := s.touched[obj.VolumeKey(call.volume.Name)]; !known {
			keys = append(keys, obj.VolumeKey(call.volume.Name)) // it was never stored
		}
	}
	var effects []StorageEffect
	for _, key := range keys {
		if key.Kind != obj.KindVolume {
			continue
		}
		before, _ := s.touched[key].(*corev1.PersistentVolume)
		after, _ := s.now(key).(*corev1.PersistentVolume)
		effect := s.storageEffect(before, after)
		if call, ran := done[key.Name]; ran {
			effect = StorageEffect{Outcome: call.outcome, By: call.by, Claim: claimOf(call.volume), Why: "its claim is gone"}
		}
		if effect.Outcome != "" && effect != s.storageEffect(before, before) {
			effect.Volume = key.Name
			effects = append(effects, effect)
		}
	}
	return effects
}

// storageEffect returns what is in store for the storage of a volume, by the decision of the controller; zero if it is in use or
// free.
func (s *simulation) storageEffect(before, after *corev1.PersistentVolume) StorageEffect {
	if after == nil {
		if before == nil {
			return StorageEffect{}
		}
		return StorageEffect{Outcome: Stranded, Claim: claimOf(before), Why: "its volume is gone and nobody deletes it"}
	}
	if phase := after.Status.Phase; phase != corev1.VolumeReleased && phase != corev1.VolumeFailed {
		return StorageEffect{}
	}
	policy := after.Spec.PersistentVolumeReclaimPolicy
	decision := reclaim.Decide(after, s.reclaimOptions())
	effect := StorageEffect{Outcome: Kept, Claim: claimOf(after), Why: decision.Message}
	switch {
	case decision.Action == reclaim.LeaveToProvisioner && policy == corev1.PersistentVolumeReclaimDelete:
		effect.Outcome, effect.By = Deleted, decision.By
	case s.awaitsDetaching(decision.Action, after):
		effect.Outcome, effect.By, effect.Once = Deleted, decision.Hook, "it is detached from node "+strings.Join(s.nodesOf(after), ", ")
		if decision.Action == reclaim.RunRecycler {
			effect.Outcome = Scrubbed
		}
	case decision.Action == reclaim.LeaveToProvisioner:
		effect.Why = fmt.Sprintf("its reclaim policy is %s", policy)
	case decision.Action == reclaim.RunRecycler:
		effect.Why = "it is scrubbed once no pod uses it: " + strings.Join(s.podsBy(after.Spec.ClaimRef), ", ")
	}
	return effect
}

// awaitsDetaching reports whether the deleter or recycler of a volume is held up by its attachments, and by nothing else
// (R3, R4).
func (s *simulation) awaitsDetaching(action reclaim.Action, volume *corev1.PersistentVolume) bool {
	runs := action == reclaim.RunDeleter || action == reclaim.RunRecycler && len(s.podsBy(volume.Spec.ClaimRef)) == 0
	return runs && len(s.nodesOf(volume)) > 0
}

// podsBy returns the pods that keep a volume from being scrubbed (R4).
func (s *simulation) podsBy(ref *corev1.ObjectReference) (names []string) {
	if ref == nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = ref.Namespace, ref.Name
	s.podsOn(claim)
	for _, pod := range reclaim.BlockRecycling(s.users[obj.KeyOf(claim)], ref.Namespace, ref.Name) {
		names = append(names, bindingtest.PodKey(pod.Namespace, pod.Name).String())
	}
	return names
}

func (s *simulation) reclaimOptions() reclaim.Options {
	migrations := s.rules.Migrations
	if migrations == nil {
		migrations = storageclass.InTreeMigrations()
	}
	set := s.rules.Hooks
	return reclaim.Options{Migrations: migrations, Deleters: set.Deleters, SourceDeleters: set.SourceDeleters, Recyclers: set.Recyclers}
}

// claimOf returns the claim that has or had the volume; "" if none did.
func claimOf(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

// hookRun is the call of a hook.
type hookRun struct {
	volume  *corev1.PersistentVolume
	outcome StorageOutcome
	by      string
}

// recorder is a hook that only records its calls.
type recorder struct {
	*simulation
	name string
}

func (r recorder) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	r.hookRuns = append(r.hookRuns, hookRun{volume, Deleted, r.name})
	return nil
}

func (r recorder) Recycle(_ context.Context, volume *corev1.PersistentVolume) error {
	r.hookRuns = append(r.hookRuns, hookRun{volume, Scrubbed, r.name})
	return nil
}

// hooks has a recorder for each name in the rules.
func (s *simulation) hooks() hooks.Set {
	set := hooks.Set{Recyclers: map[string]hooks.Recycler{}}
	set.Deleters, set.SourceDeleters = s.deleters(s.rules.Hooks.Deleters), s.deleters(s.rules.Hooks.SourceDeleters)
	for name := range s.rules.Hooks.Recyclers {
		set.Recyclers[name] = recorder{s, name}
	}
	return set
}

func (s *simulation) deleters(names sets.Set[string]) map[string]hooks.Deleter {
	deleters := map[string]hooks.Deleter{}
	for name := range names {
		deleters[name] = recorder{s, name}
	}
	return deleters
}
