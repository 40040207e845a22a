package history

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// Broke notes that a rule does not hold.
func (h *History) Broke(format string, args ...any) {
	h.Broken = append(h.Broken, fmt.Sprintf(format, args...))
	h.note("BROKEN: "+format, args...)
}

// judgeDecision holds a decision to what its controller knows, from what it has written (X5), from what it has read
// in this sync since its last write (C10, V3, F2), and from what it does at the same time (B6).
func (h *History) judgeDecision(c *Controller, action decision.Action, reads []obj.Key) {
	if !action.Writes() && !action.RunsHook() {
		return
	}
	h.judgeRestore(c, action)
	claimOfKey := func(key obj.Key) *corev1.PersistentVolumeClaim { return h.Server.Claim(key.Namespace, key.Name) }
	if proof := judge.ProofFor(action, c.State, claimOfKey); proof != (obj.Key{}) && !slices.Contains(reads, proof) {
		h.Broke("%s: %s without having read %s", action.Rule, action, proof)
	}
	if wrong := judge.WrongOfUnneeded(action, c.State); wrong != "" {
		h.Broke("%s", wrong)
	}
	if action.RunsHook() {
		if !slices.Contains(reads, action.Target()) {
			h.Broke("%s: %s without having read %s", action.Rule, action, action.Target())
		}
		return
	}
	h.judgeVersion(c, action)
	if known, ok := c.State.Known(action.Target()).(*corev1.PersistentVolume); ok && action.Volume != nil {
		if wrong := judge.WronglyTaken(known, action.Volume, c.State.Claims()); wrong != "" {
			h.Broke("%s: %s", wrong, action)
		}
	}
	if c.inDoubt[action.Target()] {
		h.Broke("B6: %s writes %s without having read it after the write before", c.Name, action.Target())
	}
	for _, other := range c.Running {
		if other.Action.Writes() && judge.PairOf(other.Action) == judge.PairOf(action) {
			h.Broke("B6: %s is at work on %s twice: %s, and %s", c.Name, judge.PairOf(action), action, other.Action)
		}
	}
}

func (h *History) judgeVersion(c *Controller, action decision.Action) {
	if action.Kind == decision.CreateVolume {
		return
	}
	var writes obj.Object = action.Claim
	if action.Volume != nil {
		writes = action.Volume
	}
	if writes.GetResourceVersion() == "" {
		h.Broke("B5: %s carries no resourceVersion", action)
	}
	wrote := c.wrote[action.Target()]
	if wrote == nil || wrote.GetUID() != writes.GetUID() {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(writes.GetResourceVersion(), wrote.GetResourceVersion()); err != nil || order < 0 {
		h.Broke("X5: %s decides on %s after it wrote %s", c.Name, writes.GetResourceVersion(), wrote.GetResourceVersion())
	}
}

// judgeCalls looks at every write of a controller in the moment in which it takes effect.
func (h *History) judgeCalls(actor string) {
	calls := h.Server.CallsSince(h.Judged)
	h.Judged += len(calls)
	for _, call := range calls {
		if volume, ok := call.After.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
			zeromap.Put(&h.hadBy, holding{volume.Name, volume.Spec.ClaimRef.UID}, true)
		}
		h.judgeData(call, actor)
		if actor == "people" || !call.Writes() || !call.Changed() || call.Before == nil || call.After == nil {
			continue
		}
		h.note("    %s", call)
		if wrong := h.wrongOf(call, actor); wrong != "" {
			h.Broke("%s: by %s", wrong, actor)
		}
	}
}

// judgeData follows whose data is on each volume, and holds each claim that becomes Bound to X3.
func (h *History) judgeData(call bindingtest.Call, actor string) {
	people := actor == "people"
	if !h.followsData || !call.Writes() || !call.Changed() {
		return
	}
	before, _ := call.Before.(*corev1.PersistentVolume)
	after, _ := call.After.(*corev1.PersistentVolume)
	if call.Key.Kind == obj.KindVolume && (people || before == nil || after == nil) {
		zeromap.Put(&h.data, call.Key.Name, h.data[call.Key.Name].Edited(before, after))
		h.follow(before, after)
		if people && after != nil && after.Spec.ClaimRef != nil && after.Spec.ClaimRef.UID != "" {
			zeromap.Put(&h.handed, holding{after.Name, after.Spec.ClaimRef.UID}, true)
		}
	}
	if call.Key.Kind == obj.KindVolume && h.outrun && h.heirs[call.Key.Name] != (obj.Key{}) {
		delete(h.data, call.Key.Name) // it was decided before the restore, and nobody could notice that
	}
	claim, ok := call.After.(*corev1.PersistentVolumeClaim)
	if !ok {
		return
	}
	volume := h.Server.Volume(claim.Spec.VolumeName)
	bound := volume != nil && phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound
	former, _ := call.Before.(*corev1.PersistentVolumeClaim)
	if begins := former == nil || former.Status.Phase != corev1.ClaimBound; bound || begins && h.hasNotNoticed(actor) {
		zeromap.Put(&h.overtaken, claim.UID, !bound)
	}
	if h.overtaken[claim.UID] || !judge.Has(claim, volume) {
		return
	}
	handed := holding{claim.Spec.VolumeName, claim.UID}
	if wrong := judge.WrongHeir(claim, h.data[claim.Spec.VolumeName], h.snapshot().Claims); wrong != "" && !people && !h.handed[handed] && h.heirs[claim.Spec.VolumeName] != obj.KeyOf(claim) {
		h.Broke("%s", wrong)
	}
	delete(h.handed, handed)
	if had := h.madeAgain[claim.Spec.VolumeName]; had != "" && had != claim.UID && h.hasLost(had, claim.Spec.VolumeName) {
		h.Broke("X3: %s becomes Bound to %s, which was made again under the claim with UID %s (M2)", claim.Name, claim.Spec.VolumeName, had)
	}
	delete(h.heirs, claim.Spec.VolumeName)
	delete(h.madeAgain, claim.Spec.VolumeName) // another claim has its UID in it now, which ends that
	zeromap.Put(&h.data, volume.Name, judge.DataOf(claim, volume))
}

// hasNotNoticed reports whether a controller does not know yet that the server was restored.
func (h *History) hasNotNoticed(actor string) bool {
	return slices.ContainsFunc(h.Controllers, func(c *Controller) bool { return c.Name == actor && c.unnoticed })
}

// follow notes whose volume is made again, as all controllers know: the claim's that had it last. It is as a person says who gives it to a
// claim.
func (h *History) follow(before, after *corev1.PersistentVolume) {
	if after != nil {
		delete(h.misgiven, after.Name)
		ofNobody := after.Spec.ClaimRef != nil && after.Spec.ClaimRef.UID == nobodys
		if had := h.madeAgain[after.Name]; before == nil && ofNobody && had != "" && h.hasLost(had, after.Name) && h.allKnowBound(had) {
			zeromap.Put(&h.misgiven, after.Name, had)
		}
	}
	switch {
	case after != nil && after.Spec.ClaimRef != nil:
		delete(h.madeAgain, after.Name)
	case after != nil || before.Spec.ClaimRef == nil: // made, or made and removed, without one
	case h.allKnow(before.Name, before.Spec.ClaimRef.UID):
		zeromap.Put(&h.madeAgain, before.Name, before.Spec.ClaimRef.UID)
	default:
		delete(h.madeAgain, before.Name)
	}
}

// allKnowBound reports whether all controllers know the claim with that UID, and that it is Bound.
func (h *History) allKnowBound(uid types.UID) bool {
	return !slices.ContainsFunc(h.Controllers, func(c *Controller) bool {
		return !slices.ContainsFunc(c.State.Claims(), func(claim *corev1.PersistentVolumeClaim) bool { return claim.UID == uid && phase.Owned(claim) != "" })
	})
}

// hasLost reports whether the claim is there that had a volume before, and names it.
func (h *History) hasLost(uid types.UID, volume string) bool {
	return slices.ContainsFunc(h.snapshot().Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.UID == uid && (phase.Lost(claim) == volume || phase.Owned(claim) == volume)
	})
}

func (h *History) wrongOf(call bindingtest.Call, actor string) string {
	switch after := call.After.(type) {
	case *corev1.PersistentVolume:
		before := call.Before.(*corev1.PersistentVolume)
		if had := h.misgiven[after.Name]; had != "" && judge.IsReleased(after) && after.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain && h.hasLost(had, after.Name) {
			return fmt.Sprintf("X2: %s is to be reclaimed, which was made again under the claim with UID %s", after.Name, had)
		}
		if before.Spec.ClaimRef != nil {
			if h.outrun && (!judge.Unbinds(before, after) || obj.ReferencedClaim(after) == obj.ReferencedClaim(before)) {
				return "" // a release that the restore has overtaken: it destroys nothing, and is taken back (V2); or who had the volume has it reserved (V4)
			}
			return judge.WrongOfVolume(before, after, h.snapshot().Claims)
		}
	case *corev1.PersistentVolumeClaim:
		if h.hasNotNoticed(actor) {
			return "" // what is bound between a restore and its notice (W8)
		}
		volume := h.Server.Volume(after.Spec.VolumeName)
		if volume != nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == nobodys {
			return "" // somebody has made it again while it was being bound
		}
		return judge.WrongOfClaim(after, volume)
	}
	return ""
}

// JudgeEnd judges what there is when all is settled: inputs that were modified (X6), volumes that are still reserved (B6), and
// each volume and claim.
func (h *History) JudgeEnd() {
	for _, seen := range h.handedOut {
		if !reflect.DeepEqual(seen.object, seen.copy) {
			h.Broke("X6: %s was modified: %s", seen.copy.GetName(), bindingtest.Diff(seen.copy, seen.object))
		}
	}
	for _, c := range h.Controllers {
		if kept := c.State.Reserved(); len(kept) > 0 {
			h.Broke("B6: %s keeps volumes for claims that nobody is at work on: %v", c.Name, kept)
		}
	}
	world := h.snapshot()
	if len(h.Controllers) > 0 {
		h.Broken = append(h.Broken, judge.Untold(h.Controllers[0].Rules, h.objects(), judge.EveryEvent)...)
	}
	for _, volume := range world.Volumes {
		h.JudgeVolume(world, volume)
	}
	for _, claim := range world.Claims {
		h.JudgeClaim(world, claim)
	}
}

// snapshot returns all that the server has, read live.
func (h *History) snapshot() decision.Snapshot { return testkit.Knowing(h.objects()...) }

// objects returns the same as a list.
func (h *History) objects() []obj.Object {
	var objects []obj.Object
	for _, kind := range bindingtest.Kinds() {
		list, _ := h.Server.List(context.Background(), kind, "")
		objects = append(objects, list...)
	}
	h.Judged += len(h.Server.CallsSince(h.Judged))
	return objects
}

// holding is a volume's name, and the UID of a claim that was in its claimRef.
type holding struct {
	volume string
	by     types.UID
}

// keptForFormer reports whether a volume may be kept for a claim that had it before it was made again, another than the one with that UID: it is Lost, or
// Pending by its tenant or a restore, and names it (M2). Whether it is kept depends on what each controller has seen.
func (h *History) keptForFormer(world decision.Snapshot, volume *corev1.PersistentVolume, but types.UID) bool {
	return volume.Spec.ClaimRef == nil && slices.ContainsFunc(world.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.UID != but && claim.Status.Phase != corev1.ClaimBound && claim.Spec.VolumeName == volume.Name && h.hadBy[holding{volume.Name, claim.UID}]
	})
}

// JudgeVolume judges a volume in a settled world.
func (h *History) JudgeVolume(world decision.Snapshot, volume *corev1.PersistentVolume) {
	var claim *corev1.PersistentVolumeClaim
	if ref := volume.Spec.ClaimRef; ref != nil {
		if ref.Namespace == "" || ref.Name == "" {
			return // V1: it waits, and a person is told; a claim that is Bound to it has to have it again (X1)
		}
		claim, _ = world.Claim(ref.Namespace, ref.Name)
	}
	standing := phase.VolumeBindingStateOf(volume, claim)
	if judge.StorageNoted(volume) || judge.KeptBack(volume) && (standing == phase.VolumeFree || standing == phase.VolumeBinding) {
		return // R8: its storage may be gone, and a person is told
	}
	if owners := world.Owners(volume.Name); volume.Spec.ClaimRef == nil && len(owners) > 0 {
		if owner, _ := world.Claim(owners[0].Namespace, owners[0].Name); len(owners) == 1 && !h.keptForFormer(world, volume, owner.UID) {
			h.Broke("C11: %s has no claimRef, and %v is Bound to it", volume.Name, owners)
		}
		return // M2: nobody gets it, and it stays as it is
	}
	if standing == phase.VolumeFree && len(world.Owners(volume.Name)) > 0 {
		return // V1: its claimRef gives it to another, the claim stays Bound (C9, C12), and a person is told
	}
	if h.keptForFormer(world, volume, "") {
		return
	}
	if standing == phase.VolumeMisbound || standing == phase.VolumeUnneeded {
		if other, _ := world.Volume(claim.Spec.VolumeName); other == nil || phase.ClaimRefStateOf(other, claim) != phase.ClaimRefBound {
			return // V2: it is left as it is
		}
	}
	switch standing {
	case phase.VolumeMisbound:
		h.Broke("X1, V4: %s is still held by %s, which has %s", volume.Name, claim.Name, claim.Spec.VolumeName)
	case phase.VolumeBinding:
		h.judgeHalfBound(world, volume, claim)
	case phase.VolumeUnneeded, phase.VolumeOrphaned:
		if claim != nil && obj.OlderThan(claim, volume.Spec.ClaimRef.ResourceVersion) {
			return // V3: a restore, or whoever answers in the server's place, shows the claim of before
		}
		if len(world.Owners(volume.Name)) > 0 {
			return // R3: also under Retain, where such a claim stays Bound (C9)
		}
		for _, claim := range world.Claims {
			if judge.WasBoundTo(claim, volume) && volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
				return // R3: it may have that claim's data
			}
		}
		if !judge.IsReleased(volume) {
			h.Broke("V3: %s is %s", volume.Name, volume.Status.Phase)
		}
	default:
		if want := phase.OfVolume(volume, standing); volume.Status.Phase != want {
			h.Broke("V1, V2: %s is %s, not %s", volume.Name, volume.Status.Phase, want)
		}
	}
}

// judgeHalfBound judges a volume that is held by a claim that names none: only something that does not fit, a deletion,
// or bind-completed, forged halfway or of a claim whose volume's name is lost (C10), keeps the two from coming together.
func (h *History) judgeHalfBound(world decision.Snapshot, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	mismatches, err := match.Check(claim, volume, match.Terms{Class: world.Class(storageclass.OfClaim(claim))})
	if len(mismatches) == 0 && err == nil && claim.DeletionTimestamp == nil && !phase.BindCompleted(claim) {
		h.Broke("B5: %s is held by %s and the bind does not go on", volume.Name, claim.Name)
	}
}

// JudgeClaim judges a claim in a settled world.
func (h *History) JudgeClaim(world decision.Snapshot, claim *corev1.PersistentVolumeClaim) {
	volume, _ := world.Volume(claim.Spec.VolumeName)
	standing := phase.ClaimBindingStateOf(claim, volume)
	if volume != nil && (judge.StorageNoted(volume) || judge.KeptBack(volume) && claim.Status.Phase != corev1.ClaimBound) {
		return // R8: nobody gets it, nor is a Lost claim healed by it
	}
	if standing == phase.ClaimBound && claim.Status.Phase == corev1.ClaimLost && phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound {
		h.Broke("X4: %s is Lost and holds %s", claim.Name, volume.Name)
	}
	if volume != nil && volume.Spec.ClaimRef == nil && phase.Owned(claim) != "" && (len(world.Owners(volume.Name)) > 1 || h.keptForFormer(world, volume, claim.UID)) {
		return // C11: nobody gets it
	}
	if claim.Status.Phase == corev1.ClaimBound {
		h.judgeBound(world, claim, volume)
	}
	wasBound := standing == phase.ClaimBound || standing == phase.ClaimMisbound || standing == phase.ClaimLost
	if claim.DeletionTimestamp != nil && !wasBound {
		return // C12
	}
	switch standing {
	case phase.ClaimUnbound:
		if found, err := world.Find(claim); err == nil && found.Volume != nil && !judge.KeptBack(found.Volume) && !h.keptForFormer(world, found.Volume, claim.UID) {
			h.Broke("C1: %s fits %s, and nobody binds them", found.Volume.Name, claim.Name)
		}
		if h.provisions(world, claim) {
			return // C4 leaves the phase
		}
	case phase.ClaimRequestsVolume:
		mismatches, _ := match.CheckNamed(claim, volume, nil)
		if len(mismatches) == 0 && len(world.Owners(volume.Name)) == 0 && !h.keptForFormer(world, volume, claim.UID) {
			h.Broke("C7: %s fits %s, which names it, and nobody binds them", volume.Name, claim.Name)
		}
	case phase.ClaimBinding:
		h.Broke("C8: %s is pre-bound to %s, which names it, and nobody binds them", volume.Name, claim.Name)
	}
	if want := judge.PhaseOfClaim(claim, standing); claim.Status.Phase != want {
		h.Broke("C: %s is %s, not %s", claim.Name, claim.Status.Phase, want)
	}
}

func (h *History) provisions(world decision.Snapshot, claim *corev1.PersistentVolumeClaim) bool {
	class := world.Class(storageclass.OfClaim(claim))
	return storageclass.OfClaim(claim) != "" && (class == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate || claim.Annotations[testkit.SelectedNode] != "")
}

// judgeBound checks that each Bound claim has a volume of its own, and one only (X1).
func (h *History) judgeBound(world decision.Snapshot, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	if volume != nil && volume.Spec.ClaimRef == nil && len(world.Owners(volume.Name)) > 1 {
		return // M2: they stay as they are
	}
	if phase.BindCompleted(claim) && (volume == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound || volume.Status.Phase != corev1.VolumeBound) {
		h.Broke("X1: %s is Bound without a volume that is bound to it", claim.Name)
	}
	for _, other := range world.Claims {
		if other.Name != claim.Name && other.Status.Phase == corev1.ClaimBound && other.Spec.VolumeName == claim.Spec.VolumeName && phase.BindCompleted(other) && phase.BindCompleted(claim) {
			h.Broke("X1: %s and %s are both Bound to %s", claim.Name, other.Name, volume.Name)
		}
	}
}

// PassAgain syncs everything once more: nothing is written and no event is sent (X8).
func (h *History) PassAgain() {
	h.note("second pass")
	calls := h.Judged
	for _, c := range h.Controllers {
		c.events = 0
		for _, volume := range h.snapshot().Volumes {
			c.Enqueue([]obj.Key{obj.VolumeKey(volume.Name)})
		}
		for _, claim := range h.snapshot().Claims {
			c.Enqueue([]obj.Key{obj.KeyOf(claim)})
		}
	}
	if !h.Settle() {
		h.Broke("X8: the second pass does not settle")
	}
	for _, call := range h.Server.CallsSince(calls) {
		if call.Writes() {
			h.Broke("X8: the second pass makes %s", call)
		}
	}
	for _, c := range h.Controllers {
		if c.events > 0 {
			h.Broke("X8: the second pass sends %d events", c.events)
		}
	}
}
