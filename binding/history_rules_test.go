package binding_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

func (h *history) broke(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
	h.note("BROKEN: "+format, args...)
}

// judgeDecision holds a decision to what its controller knows, from what it has written (X5), from what it has read
// in this sync since its last write (C10, V3, F2), and from what it does at the same time (B6).
func (h *history) judgeDecision(m *member, action binding.Action, reads []obj.Key) {
	if !action.Writes() && !action.RunsHook() {
		return
	}
	claimOfKey := func(key obj.Key) *corev1.PersistentVolumeClaim { return h.server.Claim(key.Namespace, key.Name) }
	if proof := proofFor(action, m.state, claimOfKey); proof != (obj.Key{}) && !slices.Contains(reads, proof) {
		h.broke("%s: %s without having read %s", action.Rule, action, proof)
	}
	if wrong := wrongOfUnneeded(action, m.state); wrong != "" {
		h.broke("%s", wrong)
	}
	if action.RunsHook() {
		if !slices.Contains(reads, action.Target()) {
			h.broke("%s: %s without having read %s", action.Rule, action, action.Target())
		}
		return
	}
	h.judgeVersion(m, action)
	if known, ok := m.state.Known(action.Target()).(*corev1.PersistentVolume); ok && action.Volume != nil {
		if wrong := wronglyTaken(known, action.Volume, m.state.Claims()); wrong != "" {
			h.broke("%s: %s", wrong, action)
		}
	}
	if m.doubts[action.Target()] {
		h.broke("B6: %s writes %s without having read it after the write before", m.name, action.Target())
	}
	for _, other := range m.running {
		if other.action.Writes() && pairIn(other.action) == pairIn(action) {
			h.broke("B6: %s is at work on %s twice: %s, and %s", m.name, pairIn(action), action, other.action)
		}
	}
}

// pairIn is the pair that a write is about, by its volume if it has one.
func pairIn(action binding.Action) obj.Key {
	if action.Rule == "B3" || action.Rule == "B4" {
		return obj.VolumeKey(action.Claim.Spec.VolumeName)
	}
	return action.Target()
}

func (h *history) judgeVersion(m *member, action binding.Action) {
	if action.Kind == binding.CreateVolume {
		return
	}
	var writes obj.Object = action.Claim
	if action.Volume != nil {
		writes = action.Volume
	}
	if writes.GetResourceVersion() == "" {
		h.broke("B5: %s carries no resourceVersion", action)
	}
	wrote := m.wrote[action.Target()]
	if wrote == nil || wrote.GetUID() != writes.GetUID() {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(writes.GetResourceVersion(), wrote.GetResourceVersion()); err != nil || order < 0 {
		h.broke("X5: %s decides on %s after it wrote %s", m.name, writes.GetResourceVersion(), wrote.GetResourceVersion())
	}
}

// judgeCalls looks at every write of a controller in the moment in which it takes effect.
func (h *history) judgeCalls(actor string) {
	calls := h.server.CallsSince(h.calls)
	h.calls += len(calls)
	if actor == "people" {
		return
	}
	for _, call := range calls {
		if !call.Writes() || !call.Changed() || call.Before == nil || call.After == nil {
			continue
		}
		h.note("    %s", call)
		if wrong := h.wrongOf(call); wrong != "" {
			h.broke("%s: by %s", wrong, actor)
		}
	}
}

func (h *history) wrongOf(call bindingtest.Call) string {
	switch after := call.After.(type) {
	case *corev1.PersistentVolume:
		before := call.Before.(*corev1.PersistentVolume)
		if before.Spec.ClaimRef != nil {
			return wrongOfVolume(before, after, h.server.Claim(before.Spec.ClaimRef.Namespace, before.Spec.ClaimRef.Name))
		}
	case *corev1.PersistentVolumeClaim:
		return wrongOfClaim(after, h.server.Volume(after.Spec.VolumeName))
	}
	return ""
}

// judgeEnd looks at a settled state.
func (h *history) judgeEnd() {
	for _, seen := range h.seen {
		if !reflect.DeepEqual(seen.object, seen.copy) {
			h.broke("X6: %s was modified: %s", seen.copy.GetName(), bindingtest.Diff(seen.copy, seen.object))
		}
	}
	for _, m := range h.members {
		if kept := m.state.Reserved(); len(kept) > 0 {
			h.broke("B6: %s keeps volumes for claims that nobody is at work on: %v", m.name, kept)
		}
	}
	world := h.snapshot()
	for _, volume := range world.Volumes {
		h.judgeVolume(world, volume)
	}
	for _, claim := range world.Claims {
		h.judgeClaim(world, claim)
	}
}

// snapshot is all that the server has, read live.
func (h *history) snapshot() binding.Snapshot {
	var objects []obj.Object
	for _, kind := range bindingtest.Kinds() {
		list, _ := h.server.List(context.Background(), kind, "")
		objects = append(objects, list...)
	}
	h.calls = len(h.server.CallsSince(0))
	return knowing(objects...)
}

func (h *history) judgeVolume(world binding.Snapshot, volume *corev1.PersistentVolume) {
	var claim *corev1.PersistentVolumeClaim
	if ref := volume.Spec.ClaimRef; ref != nil {
		claim, _ = world.Claim(ref.Namespace, ref.Name)
	}
	standing := phase.VolumeStandingOf(volume, claim)
	if owners := world.Owners(volume.Name); volume.Spec.ClaimRef == nil && len(owners) > 0 {
		if len(owners) == 1 {
			h.broke("C11: %s has no claimRef, and %v is Bound to it", volume.Name, owners)
		}
		return // M2: nobody gets it, and it stays as it is
	}
	if standing == phase.Misplaced || standing == phase.Surplus {
		if other, _ := world.Volume(claim.Spec.VolumeName); other == nil || phase.LinkOf(other, claim) != phase.Held {
			return // V2: it is left as it is
		}
	}
	switch standing {
	case phase.Misplaced:
		h.broke("X1, V4: %s is still held by %s, which has %s", volume.Name, claim.Name, claim.Spec.VolumeName)
	case phase.Binding:
		h.judgeHalfBound(world, volume, claim)
	case phase.Surplus, phase.Orphaned:
		if !isReleased(volume) {
			h.broke("V3: %s is %s", volume.Name, volume.Status.Phase)
		}
	default:
		if want := phase.OfVolume(volume, standing); volume.Status.Phase != want {
			h.broke("V1, V2: %s is %s, not %s", volume.Name, volume.Status.Phase, want)
		}
	}
}

// judgeHalfBound is about a volume that is held by a claim that names none: only something that does not fit, a deletion,
// or bind-completed, forged halfway or of a claim whose volume's name is lost (C10), keeps the two from coming together.
func (h *history) judgeHalfBound(world binding.Snapshot, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	mismatches, err := match.Check(claim, volume, match.Terms{Class: world.Class(storageclass.OfClaim(claim))})
	if len(mismatches) == 0 && err == nil && claim.DeletionTimestamp == nil && !phase.BindCompleted(claim) {
		h.broke("B5: %s is held by %s and the bind does not go on", volume.Name, claim.Name)
	}
}

func (h *history) judgeClaim(world binding.Snapshot, claim *corev1.PersistentVolumeClaim) {
	volume, _ := world.Volume(claim.Spec.VolumeName)
	standing := phase.ClaimStandingOf(claim, volume)
	if standing == phase.Bound && claim.Status.Phase == corev1.ClaimLost && phase.LinkOf(volume, claim) == phase.Held {
		h.broke("X4: %s is Lost and holds %s", claim.Name, volume.Name)
	}
	if volume != nil && volume.Spec.ClaimRef == nil && phase.Owned(claim) != "" && len(world.Owners(volume.Name)) > 1 {
		return // C11: nobody gets it
	}
	if claim.Status.Phase == corev1.ClaimBound {
		h.judgeBound(world, claim, volume)
	}
	wasBound := standing == phase.Bound || standing == phase.Misbound || standing == phase.Lost
	if claim.DeletionTimestamp != nil && !wasBound {
		return // C12
	}
	switch standing {
	case phase.Unbound:
		if found, err := world.Find(claim); err == nil && found.Volume != nil {
			h.broke("C1: %s fits %s, and nobody binds them", found.Volume.Name, claim.Name)
		}
		if h.provisions(world, claim) {
			return // C4 leaves the phase
		}
	case phase.Asking:
		mismatches, _ := match.CheckNamed(claim, volume)
		if len(mismatches) == 0 && len(world.Owners(volume.Name)) == 0 {
			h.broke("C7: %s fits %s, which names it, and nobody binds them", volume.Name, claim.Name)
		}
	case phase.Finishing:
		h.broke("C8: %s is set aside for %s, which names it, and nobody binds them", volume.Name, claim.Name)
	}
	if want := phase.OfClaim(claim, standing); claim.Status.Phase != want {
		h.broke("C: %s is %s, not %s", claim.Name, claim.Status.Phase, want)
	}
}

func (h *history) provisions(world binding.Snapshot, claim *corev1.PersistentVolumeClaim) bool {
	class := world.Class(storageclass.OfClaim(claim))
	return storageclass.OfClaim(claim) != "" && (class == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate || claim.Annotations[selectedNode] != "")
}

// judgeBound is X1: to each Bound claim a volume of its own, and one only.
func (h *history) judgeBound(world binding.Snapshot, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	if volume != nil && volume.Spec.ClaimRef == nil && len(world.Owners(volume.Name)) > 1 {
		return // M2: they stay as they are
	}
	if phase.BindCompleted(claim) && (volume == nil || phase.LinkOf(volume, claim) != phase.Held || volume.Status.Phase != corev1.VolumeBound) {
		h.broke("X1: %s is Bound without a volume that is bound to it", claim.Name)
	}
	for _, other := range world.Claims {
		if other.Name != claim.Name && other.Status.Phase == corev1.ClaimBound && other.Spec.VolumeName == claim.Spec.VolumeName && phase.BindCompleted(other) && phase.BindCompleted(claim) {
			h.broke("X1: %s and %s are both Bound to %s", claim.Name, other.Name, volume.Name)
		}
	}
}

// passAgain syncs everything once more: nothing is written and nobody is told anything (X8).
func (h *history) passAgain() {
	h.note("second pass")
	calls := h.calls
	for _, m := range h.members {
		m.events = 0
		for _, volume := range h.snapshot().Volumes {
			m.enqueue([]obj.Key{obj.VolumeKey(volume.Name)})
		}
		for _, claim := range h.snapshot().Claims {
			m.enqueue([]obj.Key{obj.KeyOf(claim)})
		}
	}
	if !h.settle() {
		h.broke("X8: the second pass does not settle")
	}
	for _, call := range h.server.CallsSince(calls) {
		if call.Writes() {
			h.broke("X8: the second pass makes %s", call)
		}
	}
	for _, m := range h.members {
		if m.events > 0 {
			h.broke("X8: the second pass sends %d events", m.events)
		}
	}
}
