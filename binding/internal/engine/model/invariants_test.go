package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/history"
	"github.com/pvbind/pvbind/binding/internal/judge"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// What must hold at every state. What must hold when all is settled is judged by judgeSettled, and that nothing
// shared is modified (X6) is looked at when all is explored, on every object that there was.

func versionIn(object obj.Object) uint8 {
	version, _ := strconv.Atoi(object.GetResourceVersion())
	return uint8(version)
}

// isList reports whether the key is of a list, which is read but not known.
func isList(key obj.Key) bool {
	return key.IsList()
}

// judgeKnown holds what a leader knows of a name to X5: it never goes back, unless the server does.
func (m *model) judgeKnown(now *state, l *leader, at int, before obj.Object) {
	if isList(m.keys[at]) || before == nil || now.travel == wentBack {
		return
	}
	after := l.state.Known(m.keys[at])
	if after != nil && versionIn(after) < versionIn(before) {
		m.broke("X5: of %s version %s is known, and then %s", m.keys[at], before.GetResourceVersion(), after.GetResourceVersion())
	}
}

// judgeReply holds what a leader knows to what it has just written (X5).
func (m *model) judgeReply(l *leader, wrote *revision) {
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
func (m *model) judgeDecision(l *leader, decided *request) {
	action := decided.action
	if action.RunsHook() {
		m.judgeHookDecision(l, decided)
	}
	if action.RunsHook() || action.Writes() {
		m.judgeProof(l, decided)
		if l.unread != 0 && judge.Destroys(action, l.state.Known(action.Target())) {
			m.broke("W8: %s, and the server went back: not all was read since", action)
		}
	}
	if !action.Writes() {
		return
	}
	known, creates := l.state.Known(action.Target()), action.Kind == decision.CreateVolume
	if volume, ok := known.(*corev1.PersistentVolume); ok && action.Volume != nil {
		if wrong := judge.WronglyTaken(volume, action.Volume, l.state.Claims()); wrong != "" {
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
	case l.inDoubt.has(decided.target):
		m.broke("B6: %s without having read what became of the write before", action)
	}
	for _, other := range l.running {
		if other != nil && other.action.Writes() && other.answer == nil && judge.PairOf(other.action) == judge.PairOf(action) {
			m.broke("B6: one controller is at work on %s twice: %s, and %s", judge.PairOf(action), action, other.action)
		}
	}
}

// judgeProof checks that what has to be read first was read.
func (m *model) judgeProof(l *leader, decided *request) {
	claimOfKey := func(key obj.Key) *corev1.PersistentVolumeClaim {
		claim, _ := l.state.Known(key).(*corev1.PersistentVolumeClaim)
		return claim
	}
	if proof := judge.ProofFor(decided.action, l.state, claimOfKey); proof != (obj.Key{}) && !decided.reads.has(m.indexOf(proof)) {
		m.broke("%s: %s without having read %s", decided.action.Rule, decided.action, proof)
	}
	if wrong := judge.WrongOfUnneeded(decided.action, l.state); wrong != "" {
		m.broke("%s", wrong)
	}
}

// judgeWrite looks at a write of a controller in the moment in which it takes effect.
func (m *model) judgeWrite(now *state, at int, before *revision, outrun bool) {
	after := now.server.objects[at]
	if before == nil || after == nil {
		return
	}
	switch object := after.object.(type) {
	case *corev1.PersistentVolume:
		was := before.object.(*corev1.PersistentVolume)
		if !outrun || judge.Unbinds(was, object) { // else it destroys nothing, and is taken back (V2)
			m.judgeVolumeWrite(now, at, was, object)
		}
	case *corev1.PersistentVolumeClaim:
		m.judgeClaimWrite(now, object, outrun)
		m.judgeGift(now, before.object.(*corev1.PersistentVolumeClaim), object)
	}
}

// judgeGift holds a claim that becomes Bound to R8: the storage of its volume is there, and nobody deletes or scrubs it yet.
func (m *model) judgeGift(now *state, before, after *corev1.PersistentVolumeClaim) {
	at, known := m.index[obj.VolumeKey(after.Spec.VolumeName)]
	if !known || !m.hooked() || after.Status.Phase != corev1.ClaimBound || before.Status.Phase == corev1.ClaimBound || now.storage.excused.has(at) {
		return
	}
	if !now.storage.kept.has(at) || now.storage.begun.has(at) {
		m.broke("R8: %s gets %s, whose storage is deleted, or may be deleted or scrubbed at any time", after.Name, after.Spec.VolumeName)
	}
}

func (m *model) judgeVolumeWrite(now *state, at int, before, after *corev1.PersistentVolume) {
	if before.Spec.ClaimRef == nil {
		return
	}
	if wrong := judge.WrongOfVolume(before, after, now.server.claims()); wrong != "" {
		m.broke("%s", wrong)
	} else if judge.Unbinds(before, after) && judge.IsReleased(before) && now.storage.written.has(at) {
		m.broke("R4: %s is free for others with the data of %s", before.Name, before.Spec.ClaimRef.Name)
	}
}

func (m *model) judgeClaimWrite(now *state, claim *corev1.PersistentVolumeClaim, outrun bool) {
	if claim.Spec.VolumeName == "" {
		return
	}
	volume := now.server.volume(claim.Spec.VolumeName)
	if wrong := judge.WrongOfClaim(claim, volume); wrong != "" && !outrun {
		m.broke("%s", wrong)
	}
	if judge.Has(claim, volume) {
		at := m.indexOf(obj.VolumeKey(volume.Name))
		if wrong := judge.WrongHeir(claim, now.data[at], now.server.claims()); wrong != "" {
			m.broke("%s", wrong)
		}
		now.data[at] = judge.DataOf(claim, volume)
	}
}

// judgeSettled looks at a state in which the controllers have nothing to do: X1, X3, X4 and what the C and V rules
// say of it, on what the server has; and a second pass over everything by every leader (X8).
func (m *model) judgeSettled(now *state) (broken []string) {
	end := settledState{now.server.objects, now.storage}
	if verdict, ok := m.judged[end]; ok {
		broken = verdict
	} else {
		broken = append(judgedEnd(&now.server), judge.Untold(m.rules, now.server.all(), m.tells)...)
		if m.hooked() {
			broken = append(broken, judgeStorage(&now.server, now.storage)...)
		}
		m.judged[end] = broken
	}
	for _, l := range now.leaders {
		if l != nil && len(l.state.Reserved()) > 0 {
			broken = append(slices.Clip(broken), fmt.Sprintf("B6: volumes are kept for claims that nobody is at work on: %v", l.state.Reserved()))
		}
	}
	return append(slices.Clip(broken), m.secondPass(now)...)
}

// settledState is what a settled state is judged by.
type settledState struct {
	objects [maxNames]*revision
	storage tinyStorage
}

// judgedEnd returns the judgement of the random histories, which need not settle by the same way.
func judgedEnd(s *tinyServer) []string {
	world, judge := Knowing(s.all()...), &history.History{}
	for _, volume := range world.Volumes {
		judge.JudgeVolume(world, volume)
	}
	for _, claim := range world.Claims {
		judge.JudgeClaim(world, claim)
	}
	return judge.Broken
}

// secondPass syncs everything once more: nothing is written and nobody is told anything (X8).
func (m *model) secondPass(now *state) (broken []string) {
	for who := range now.leaders {
		if now.leaders[who] == nil {
			continue
		}
		next := *now
		l := next.leaders[who].clone()
		next.leaders[who] = l
		for at, key := range m.keys {
			if known := key.Kind == obj.KindVolume || key.Kind == obj.KindClaim; known && now.server.objects[at] != nil {
				l.queue |= nameAt(at)
			}
		}
		broken = append(broken, m.drain(&next, l)...)
	}
	return broken
}

// maxSteps is how many steps a leader takes at most until it has nothing left to do; more count as an endless run.
const maxSteps = 4000

// drain lets a leader do all that it has to, in the order of the names.
func (m *model) drain(now *state, l *leader) (broken []string) {
	for range maxSteps {
		at, sync := -1, move{}
		for candidate, running := range l.running {
			if running != nil {
				at, sync.kind = candidate, sends
				if running.answer != nil {
					sync.kind = receives
				}
			}
		}
		if at < 0 {
			if l.queue == 0 {
				return broken
			}
			for first := range l.queue.each {
				at, sync.kind = first, starts
				break
			}
		}
		m.effect = effect{}
		switch sync.kind {
		case starts:
			l.queue &^= nameAt(at)
			m.decided(now, l, at, l.state.Start(m.keys[at]), request{})
		case sends:
			m.send(now, l, at, sends)
		case receives:
			m.receive(now, l, at)
		}
		broken = append(broken, m.effect.broken...)
		if want := m.wantErrors[display(m.keys[at])]; l.running[at] == nil && !strings.HasPrefix(m.effect.said, want) {
			broken = append(broken, fmt.Sprintf("X7: the sync of %s ends with %q, and not with %s", m.keys[at], m.effect.said, want))
		}
		if m.effect.writes > 0 || m.effect.events > 0 {
			return append(broken, fmt.Sprintf("X8: a second pass over %s makes %d writes and sends %d events", m.keys[at], m.effect.writes, m.effect.events))
		}
	}
	return append(broken, "X8: a second pass has no end")
}

func joined(broken []string) string { return strings.Join(broken, "\n") }
