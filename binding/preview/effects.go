package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// effects compares what was written with what it was before.
func (s *simulation) effects() Effects {
	e := Effects{Phases: []PhaseChange{}, Storage: []StorageEffect{}, Blocked: []Blocked{}}
	keys := slices.SortedFunc(maps.Keys(s.touched), obj.CompareKeys)
	for _, key := range keys {
		before, after := s.touched[key], s.now(key)
		hasPhase := key.Kind == obj.KindVolume || key.Kind == obj.KindClaim
		if was, is := phaseOf(before, "none"), phaseOf(after, "gone"); hasPhase && was != is {
			e.Phases = append(e.Phases, PhaseChange{key.String(), was, is})
		}
		if blocked, ok := s.blocked(key, before, after); ok {
			e.Blocked = append(e.Blocked, blocked)
		}
	}
	e.Storage = append(e.Storage, s.storageEffects(keys)...)
	return e
}

// now returns the object as it stands; nil if it does not exist.
func (s *simulation) now(key obj.Key) obj.Object {
	object, err := s.server.Get(context.Background(), key)
	if err != nil {
		return nil
	}
	return object
}

// phaseOf returns the phase of a volume or claim, or the given word if there is none; "" for other kinds.
func phaseOf(object obj.Object, none string) string {
	switch o := object.(type) {
	case nil:
		return none
	case *corev1.PersistentVolume:
		return string(o.Status.Phase)
	case *corev1.PersistentVolumeClaim:
		return string(o.Status.Phase)
	}
	return ""
}

// blocked says what holds an object that is to be deleted, if it is still there.
func (s *simulation) blocked(key obj.Key, before, after obj.Object) (Blocked, bool) {
	if after == nil || after.GetDeletionTimestamp() == nil {
		return Blocked{}, false
	}
	already := before != nil && before.GetDeletionTimestamp() != nil
	if already && !s.deleted[key] {
		return Blocked{}, false
	}
	held := Blocked{Object: key.String(), Finalizers: after.GetFinalizers()}
	switch o := after.(type) {
	case *corev1.PersistentVolume:
		if o.Spec.ClaimRef != nil && o.Status.Phase == corev1.VolumeBound {
			held.Users = []string{obj.ReferencedClaim(o).String()}
		}
	case *corev1.PersistentVolumeClaim: // (F2)
		unused := func(pod *corev1.Pod) bool { return !reclaim.UsesClaim(pod, o) }
		held.Users = podNames(slices.DeleteFunc(slices.Clone(s.pods()[key]), unused))
	}
	return held, true
}

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
	set, policy := s.options.Hooks, after.Spec.PersistentVolumeReclaimPolicy
	decision := reclaim.Decide(after, reclaim.Options{
		Migrations: s.options.Migrations, Deleters: set.Deleters, SourceDeleters: set.SourceDeleters, Recyclers: set.Recyclers,
	})
	effect := StorageEffect{Outcome: Kept, Claim: claimOf(after), Why: decision.Message}
	claim, nodes := obj.ReferencedClaim(after), s.nodes()[obj.VolumeKey(after.Name)]
	again, _ := s.now(claim).(*corev1.PersistentVolumeClaim)
	pods := podNames(reclaim.BlockRecycling(s.pods()[claim], claim.Namespace, claim.Name, again)) // (R4)
	detached := "it is detached from node " + strings.Join(sets.List(nodes), ", ")
	announcement, announced := reclaim.AnnouncementOf(after)
	switch action := decision.Action; {
	case action == reclaim.LeaveToProvisioner && policy == corev1.PersistentVolumeReclaimDelete:
		effect.Outcome, effect.By = Deleted, decision.By
	case action == reclaim.LeaveToProvisioner:
		effect.Why = fmt.Sprintf("its reclaim policy is %s", policy)
	case action == reclaim.RunDeleter && len(nodes) > 0: // (R3)
		effect.Outcome, effect.By, effect.Once = Deleted, decision.Hook, detached
	case action == reclaim.RunRecycler && len(nodes) > 0 && len(pods) == 0:
		effect.Outcome, effect.By, effect.Once = Scrubbed, decision.Hook, detached
	case action == reclaim.RunDeleter && announced: // (R8)
		effect.Outcome, effect.By, effect.Once = Deleted, decision.Hook, "another is done: "+announcement.Notice()
	case action == reclaim.RunRecycler && announced && !announcement.Recycles: // (R8)
		effect.Why = "a deleter was announced for it, so that it may have no storage, and is not scrubbed"
	case action == reclaim.RunRecycler && announced && len(pods) == 0:
		effect.Outcome, effect.By, effect.Once = Scrubbed, decision.Hook, "another is done: "+announcement.Notice()
	case action == reclaim.RunRecycler:
		effect.Why = "it is scrubbed once no pod uses it: " + strings.Join(pods, ", ")
	}
	return effect
}

// claimOf returns the claim that has or had the volume; "" if none did.
func claimOf(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

// podsByClaim returns the pods that name each claim.
func (s *simulation) podsByClaim() map[obj.Key][]*corev1.Pod {
	found := map[obj.Key][]*corev1.Pod{}
	pods, _ := s.server.ListPods(context.Background(), "")
	for _, pod := range pods {
		for _, name := range reclaim.ClaimNames(pod) {
			claim := obj.ClaimKey(pod.Namespace, name)
			found[claim] = append(found[claim], pod)
		}
	}
	return found
}

func podNames(pods []*corev1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, obj.KeyOfPod(pod).String())
	}
	return names
}

// nodesByVolume returns the nodes that each volume is attached to.
func (s *simulation) nodesByVolume() map[obj.Key]sets.Set[string] {
	found := map[obj.Key]sets.Set[string]{}
	attachments, _ := s.server.ListAttachments(context.Background())
	for _, attachment := range attachments {
		volume := obj.AttachedVolume(attachment)
		found[volume] = sets.New(attachment.Spec.NodeName).Union(found[volume])
	}
	return found
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

func (r recorder) Delete(_ context.Context, request hooks.ReclaimRequest) error {
	r.hookRuns = append(r.hookRuns, hookRun{request.Volume, Deleted, r.name})
	return nil
}

func (r recorder) Recycle(_ context.Context, request hooks.ReclaimRequest) error {
	r.hookRuns = append(r.hookRuns, hookRun{request.Volume, Scrubbed, r.name})
	return nil
}

// recorders returns a recorder under each name.
func recorders[H any](s *simulation, names sets.Set[string]) map[string]H {
	found := map[string]H{}
	for name := range names {
		found[name] = any(recorder{s, name}).(H)
	}
	return found
}

// hooks has a recorder for each name in the options.
func (s *simulation) hooks() hooks.Set {
	names := s.options.Hooks
	return hooks.Set{
		Deleters:       recorders[hooks.Deleter](s, names.Deleters),
		SourceDeleters: recorders[hooks.Deleter](s, names.SourceDeleters),
		Recyclers:      recorders[hooks.Recycler](s, names.Recyclers),
	}
}
