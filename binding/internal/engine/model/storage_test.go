package model_test

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// tinyStorage is what of a storage matters to the model: which volumes have any, by their names, on which of it there
// is data, and which outlived its volume because that was to be retained. It is a value, as tinyServer is. That it does
// what bindingtest.Storage does is held by TestModelStorageMatchesBindingtest.
type tinyStorage struct {
	kept, written, left nameSet
	begun               nameSet // a deleter or recycler goes on with these, and may be done at any time
	excused             nameSet // of these a restore of the server has brought volumes back, or taken them away
	told                nameSet // of these an event tells that they are left to people
	given               nameSet // of these one who had noticed a restore has given the volume to a claim since, which has data on it
}

func (s *tinyStorage) provision(at int) {
	s.kept |= nameAt(at)
	s.left &^= nameAt(at)
	s.told &^= nameAt(at)
}

func (s *tinyStorage) delete(at int) {
	s.kept &^= nameAt(at)
	s.recycle(at)
}

func (s *tinyStorage) recycle(at int) {
	s.written &^= nameAt(at)
	s.given &^= nameAt(at)
	s.begun &^= nameAt(at)
}

// write writes data, as a pod does.
func (s *tinyStorage) write(at int) { s.written |= nameAt(at) & s.kept }

// acceptsToken reports whether the storage does what a controller asks of it, and keeps the token.
func (m *model) acceptsToken(now *state, at int, announced int64) bool {
	token := tokenOf(announced)
	if token > 0 && token < now.tokens[at] && m.sabotage != takesAnyToken {
		return false
	}
	now.tokens[at] = max(now.tokens[at], token)
	return true
}

// tokenSent returns the token that a hook is called with.
func tokenSent(call decision.Action) int64 {
	if call.Request != nil {
		return call.Request.Token
	}
	return call.Token
}

// noteTold notes the storage that provisioners have made, or may have, of which a leader tells that it leaves it to people.
func (m *model) noteTold(now *state, published []decision.Event) {
	for _, event := range published {
		at, made := m.index[obj.VolumeKey(decision.ProvisionedName(event.UID))]
		if made && event.Reason == decision.EventProvisioningCleanup && strings.Contains(event.Message, "delete it by hand") {
			now.storage.told |= nameAt(at)
		}
	}
}

// noteData notes that a leader which has noticed a restore has bound a claim, whose pods have written.
func (m *model) noteData(now *state, of *request, before *revision) {
	bound := func(claim *corev1.PersistentVolumeClaim) bool { return claim.Status.Phase == corev1.ClaimBound }
	if of.noticed == 0 || before == nil || bound(before.object.(*corev1.PersistentVolumeClaim)) || !bound(of.action.Claim) {
		return
	}
	if at, ok := m.index[obj.VolumeKey(of.action.Claim.Spec.VolumeName)]; ok {
		now.storage.given |= nameAt(at) & now.storage.kept &^ now.storage.excused
	}
}

// beginHook begins what a controller asks of the storage, which goes on after the answer.
func (m *model) beginHook(now *state, of *request) answer {
	at := m.indexOf(of.action.Target())
	if !m.acceptsToken(now, at, of.action.Token) {
		return answer{fail: staleToken}
	}
	if !of.outrun {
		m.judgeHook(now, of.action)
	} else {
		now.storage.excused |= nameAt(at)
	}
	now.storage.begun |= nameAt(at)
	return answer{fail: inProgress}
}

// runHook does what a controller asks of the storage.
func (m *model) runHook(now *state, of *request) answer {
	action := of.action
	at := m.indexOf(action.Target())
	if !m.acceptsToken(now, at, tokenSent(action)) {
		return answer{fail: staleToken}
	}
	if of.outrun && action.Kind != decision.RunProvisioner && now.storage.given.has(at) {
		m.broke("W8: %s, and a claim has got it since the restore was noticed", action)
	}
	if m.whileCalled && now.travel == wentBack && of.noticed == 0 { // it could not know whom to wait for
		now.storage.excused |= nameAt(at)
	}
	m.effect.destroys |= destructionsOf(action, nil)
	if !of.outrun { // else nobody could know
		m.judgeHook(now, action)
	} else {
		now.storage.excused |= nameAt(at)
	}
	now.data[at] = judge.Data{}
	switch action.Kind {
	case decision.RunProvisioner:
		now.storage.provision(at)
		if now.leaders[1] != nil && now.server.created[at] > 0 { // P2: of two at once, what the other has just deleted is left behind
			now.storage.excused |= nameAt(at)
		}
		made := action.Request.Volume.DeepCopy()
		made.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + made.Name}
		return answer{got: m.revisions.keep(at, made, 0)}
	case decision.RunDeleter:
		now.storage.delete(at)
	case decision.RunRecycler:
		now.storage.recycle(at)
	}
	return answer{}
}

// subject returns the object that an action writes, or that a hook is called with; nil if it is a read.
func subject(action decision.Action) obj.Object {
	switch {
	case action.Request != nil:
		return action.Request.Volume
	case action.Volume != nil:
		return action.Volume
	case action.Claim != nil:
		return action.Claim
	}
	return nil
}

// judgeHookDecision holds the decision to run a hook to what its leader knows and has read in this sync since its last
// write. Of a volume that is not stored it has to be proven that it is not.
func (m *model) judgeHookDecision(l *leader, decided *request) {
	action := decided.action
	known := l.state.Known(action.Target())
	volume := subject(action).(*corev1.PersistentVolume)
	stored := volume.UID != ""
	switch {
	case !decided.reads.has(decided.target):
		m.broke("%s: %s without having read %s", action.Rule, action, action.Target())
	case l.inDoubt.has(decided.target):
		m.broke("B6: %s without having read what became of the write before", action)
	case stored && !decided.reads.has(m.indexOf(obj.AttachmentsKey())):
		m.broke("%s: %s without having read what is attached", action.Rule, action)
	case stored && (known == nil || versionIn(known) != decided.version):
		m.broke("X5: %s is decided on version %d, which is not the newest known", action, decided.version)
	case !stored && known != nil:
		m.broke("P2: %s though the volume exists", action)
	}
	for _, other := range l.running {
		if other != nil && other.action.RunsHook() && other.answer == nil && other.target == decided.target {
			m.broke("Rh: two hooks at once: %s, and %s", action, other.action)
		}
	}
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	if action.Kind == decision.RunDeleter && stored && policy != corev1.PersistentVolumeReclaimDelete ||
		action.Kind == decision.RunRecycler && policy != corev1.PersistentVolumeReclaimRecycle {
		m.broke("X2: %s, whose policy is %s", action, policy)
	}
	if claim := m.claimKnown(l, volume); action.Kind == decision.RunProvisioner && !traced(claim) {
		m.broke("P2: %s without a trace of it on the claim", action)
	}
}

func (m *model) claimKnown(l *leader, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	claim, _ := l.state.Known(judge.ClaimOf(volume)).(*corev1.PersistentVolumeClaim)
	return claim
}

// judgeHook looks at what a deleter or a recycler is called for in the moment in which it does its work (X2): that claim
// must be gone for good, or have another volume. Where the volume was never stored, it must not be now.
func (m *model) judgeHook(now *state, action decision.Action) {
	if action.Kind == decision.RunProvisioner {
		return
	}
	s, volume := &now.server, action.Volume
	if wrong := judge.WrongOfReclaim(volume, s.claims(), objectsOf[*storagev1.VolumeAttachment](s.list(obj.KindAttachment).listed)); wrong != "" {
		m.broke("%s: %s", wrong, action)
	}
	if now.storage.left.has(m.indexOf(action.Target())) {
		m.broke("X2: %s, which was to be retained", action)
	}
	if now := s.volume(volume.Name); now != nil && now.UID == volume.UID && now.Spec.ClaimRef != nil {
		if user := s.claim(judge.ClaimOf(now)); user != nil && user.UID == now.Spec.ClaimRef.UID && user.Spec.VolumeName == now.Name {
			m.broke("X2: %s, and %s uses it", action, user.Name)
		}
	}
	claim := s.claim(judge.ClaimOf(volume))
	serves := claim != nil && phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name)
	unborn := volume.UID == "" && (s.volume(volume.Name) == nil || claim != nil && claim.DeletionTimestamp != nil && !phase.BindCompleted(claim))
	if serves && !unborn {
		m.broke("X2: %s, and its claim exists", action)
	}
}

// judgeStorage looks at what is stored when all has settled: what was made is a volume's or about to be, and a volume
// that a claim has is there.
func judgeStorage(s *tinyServer, storage tinyStorage) (broken []string) {
	for at, key := range s.revisions.keys {
		if key.Kind != obj.KindVolume {
			continue
		}
		volume := s.volume(key.Name)
		switch kept := storage.kept.has(at); {
		case storage.excused.has(at), volume != nil && (keptBack(s, volume) || volume.Status.Phase == corev1.VolumeFailed): // no claim gets it, and a person is told
		case kept && volume == nil && !storage.left.has(at) && !storage.told.has(at) && untraced(s, key.Name):
			broken = append(broken, "P2: the storage of "+key.Name+" is lost track of")
		case !kept && volume != nil && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && volume.DeletionTimestamp == nil:
			broken = append(broken, "R3: "+key.Name+" has no storage any more")
		}
	}
	return broken
}

// keptBack reports whether a volume carries an announcement, and its claim is not gone: a person is told then (R8).
func keptBack(s *tinyServer, volume *corev1.PersistentVolume) bool {
	state := phase.VolumeBindingStateOf(volume, s.claim(obj.ReferencedClaim(volume)))
	return judge.KeptBack(volume) && (state == phase.VolumeFree || state == phase.VolumeBinding || state == phase.VolumeInUse)
}

// untraced reports whether a volume of that name was made for a claim that does not say so any more, or is gone. What
// people have made they know of.
func untraced(s *tinyServer, name string) bool {
	uid, made := strings.CutPrefix(name, "pvc-")
	for _, stored := range s.objects {
		if stored == nil {
			continue
		}
		if claim, ok := stored.object.(*corev1.PersistentVolumeClaim); ok && string(claim.UID) == uid && traced(claim) {
			return false
		}
	}
	return made
}

func traced(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && slices.Contains(claim.Finalizers, decision.ProvisioningFinalizer)
}

// hooked reports whether the controllers of the world have hooks.
func (m *model) hooked() bool {
	hookSet := m.rules.Hooks
	return len(hookSet.Provisioners)+len(hookSet.Deleters)+len(hookSet.SourceDeleters)+len(hookSet.Recyclers) > 0
}

// addStorage makes the storage of a volume that people have made.
func (m *model) addStorage(now *state, at int) {
	if m.hooked() && m.keys[at].Kind == obj.KindVolume {
		now.storage.provision(at)
	}
}

// judgeEnd holds the end of a volume to R3: it is deleted, and let go, after its storage.
func (m *model) judgeEnd(now *state, action decision.Action, before *revision) {
	volume := action.Volume
	if volume == nil || before == nil || !m.hooked() || !now.storage.kept.has(before.at) || now.storage.excused.has(before.at) {
		return
	}
	if judge.StandsFor(now.server.claim(obj.ReferencedClaim(volume)), volume) {
		return
	}
	lets := slices.Contains(before.object.GetFinalizers(), reclaim.InTreeFinalizer) && !slices.Contains(volume.Finalizers, reclaim.InTreeFinalizer)
	if action.Kind == decision.DeleteVolume || lets && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		m.broke("R3: %s before its storage is deleted", action)
	}
}

// retainStorage notes the storage of a volume that is gone and was to be retained: it is for people to look after.
func (m *model) retainStorage(now *state, at int, before *revision) {
	if before == nil || now.server.objects[at] != nil || !m.hooked() || !now.storage.kept.has(at) {
		return
	}
	if volume, ok := before.object.(*corev1.PersistentVolume); ok && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		now.storage.left |= nameAt(at)
	}
}

// excuseForce notes the storage of a volume that people have forced to go, or the one that may have been made for a claim that
// they have: without its finalizers nobody knows of it any more.
//
// Who removes an announcement says that the storage is there, and that nobody is at work on it.
func (m *model) excuseForce(now *state, by trouble, at int, before *revision) {
	if before == nil {
		return
	}
	after := now.server.objects[at]
	if _, announced := reclaim.AnnouncementOf(before.object); announced && after != nil {
		if _, stands := reclaim.AnnouncementOf(after.object); !stands {
			now.storage.excused |= nameAt(at)
		}
	}
	if by != forcedDeletion && by != tenantFinalizers && by != adminFinalizers {
		return
	}
	name := m.keys[at].Name
	if claim, ok := before.object.(*corev1.PersistentVolumeClaim); ok {
		if !traced(claim) {
			return
		}
		name = decision.ProvisionedName(claim.UID)
	}
	if volume, known := m.index[obj.VolumeKey(name)]; known {
		now.storage.excused |= nameAt(volume)
	}
}

// writeByPods has pods write onto the volume that a claim is Bound to.
func (m *model) writeByPods(now *state, claim *corev1.PersistentVolumeClaim) {
	if at, ok := m.index[obj.VolumeKey(claim.Spec.VolumeName)]; ok && claim.Status.Phase == corev1.ClaimBound {
		now.storage.write(at)
	}
}
