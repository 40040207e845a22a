package binding_test

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// What must hold at every moment. What must hold when all is settled is in model_settled_test.go, and that nothing
// shared is modified (X6) is looked at when all is explored, on every object that there was.

func versionIn(object obj.Object) uint8 {
	version, _ := strconv.Atoi(object.GetResourceVersion())
	return uint8(version)
}

// isList reports whether the key is of a list, which is read but not known.
func isList(key obj.Key) bool {
	return key.Kind == obj.KindPods || key.Kind == obj.KindAttachments
}

// judgeKnown holds what a leader knows of a name to X5: it never goes back.
func (m *model) judgeKnown(l *leader, at int, before obj.Object) {
	if isList(m.keys[at]) || before == nil {
		return
	}
	after := l.state.Known(m.keys[at])
	if after != nil && versionIn(after) < versionIn(before) {
		m.broke("X5: of %s version %s is known, and then %s", m.keys[at], before.GetResourceVersion(), after.GetResourceVersion())
	}
}

// judgeHeard holds what a leader knows to what it has just written (X5).
func (m *model) judgeHeard(l *leader, wrote *thing) {
	known := l.state.Known(m.keys[wrote.at])
	uid := wrote.object.GetUID()
	switch {
	case known == nil && !l.state.Buried(uid):
		m.broke("X5: %s was written, and is not known", m.keys[wrote.at])
	case known != nil && known.GetUID() == uid && versionIn(known) < wrote.version:
		m.broke("X5: of %s version %d was written, and %s is known", m.keys[wrote.at], wrote.version, known.GetResourceVersion())
	}
}

// judgeDecision holds a decision to what its leader knows, to what it has read in this sync since its last write
// (C10, V3, F2), and to what it does at the same time (B6).
func (m *model) judgeDecision(l *leader, decided *errand) {
	action := decided.action
	if action.RunsHook() {
		m.judgeHookDecision(l, decided)
	}
	if action.RunsHook() || action.Writes() {
		m.judgeProof(l, decided)
	}
	if !action.Writes() {
		return
	}
	known, creates := l.state.Known(action.Target()), action.Kind == binding.CreateVolume
	if volume, ok := known.(*corev1.PersistentVolume); ok && action.Volume != nil {
		if wrong := wronglyTaken(volume, action.Volume, l.state.Claims()); wrong != "" {
			m.broke("%s", wrong)
		}
	}
	switch {
	case creates && known != nil:
		m.broke("P2: %s though it exists", action)
	case creates:
	case decided.version == 0:
		m.broke("B5: %s carries no resourceVersion", action)
	case known == nil || versionIn(known) != decided.version:
		m.broke("X5: %s is decided on version %d, which is not the newest known", action, decided.version)
	case l.doubts.has(decided.target):
		m.broke("B6: %s without having read what became of the write before", action)
	}
	for _, other := range l.running {
		if other != nil && other.action.Writes() && other.answer == nil && pairIn(other.action) == pairIn(action) {
			m.broke("B6: one controller is at work on %s twice: %s, and %s", pairIn(action), action, other.action)
		}
	}
}

// judgeProof is about what has to be read first.
func (m *model) judgeProof(l *leader, decided *errand) {
	claimOfKey := func(key obj.Key) *corev1.PersistentVolumeClaim {
		claim, _ := l.state.Known(key).(*corev1.PersistentVolumeClaim)
		return claim
	}
	if proof := proofFor(decided.action, l.state, claimOfKey); proof != (obj.Key{}) && !decided.reads.has(m.place(proof)) {
		m.broke("%s: %s without having read %s", decided.action.Rule, decided.action, proof)
	}
	if wrong := wrongOfUnneeded(decided.action, l.state); wrong != "" {
		m.broke("%s", wrong)
	}
}

// judgeWrite looks at a write of a controller in the moment in which it takes effect.
func (m *model) judgeWrite(now *moment, at int, before *thing) {
	s, after := &now.server, now.server.objects[at]
	if before == nil || after == nil {
		return
	}
	switch object := after.object.(type) {
	case *corev1.PersistentVolume:
		m.judgeVolumeWrite(now, at, before.object.(*corev1.PersistentVolume), object)
	case *corev1.PersistentVolumeClaim:
		m.judgeClaimWrite(s, object)
	}
}

func (m *model) judgeVolumeWrite(now *moment, at int, before, after *corev1.PersistentVolume) {
	if before.Spec.ClaimRef == nil {
		return
	}
	if wrong := wrongOfVolume(before, after, now.server.claim(claimOf(before))); wrong != "" {
		m.broke("%s", wrong)
	} else if unbinds(before, after) && isReleased(before) && now.storage.written.has(at) {
		m.broke("R4: %s is free for others with the data of %s", before.Name, before.Spec.ClaimRef.Name)
	}
}

func (m *model) judgeClaimWrite(s *tinyServer, claim *corev1.PersistentVolumeClaim) {
	if claim.Spec.VolumeName == "" {
		return
	}
	if wrong := wrongOfClaim(claim, s.volume(claim.Spec.VolumeName)); wrong != "" {
		m.broke("%s", wrong)
	}
}
