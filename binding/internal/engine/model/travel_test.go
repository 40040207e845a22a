package model_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/obj"
)

// travel is how far the server has come on its way back in time: one backup, and one restore from it.
type travel string

const (
	noTravel  travel = ""
	mayBackUp travel = "MayBackUp"
	backedUp  travel = "BackedUp"
	wentBack  travel = "WentBack"
)

// versionsApart is how much later all versions are that are given after a backup, so that after a restore none is given twice, as
// with bindingtest.Server.
const versionsApart = 100

// backUp makes the backup.
func (s *state) backUp() {
	backup := s.server
	backup.log = [len(watched)][]change{}
	s.backup, s.travel = &backup, backedUp
	for at := range s.server.written {
		s.server.written[at] += versionsApart
	}
}

// goBack restores the server. UIDs and the clock go on, and the storage stays as it is. Caches are told what they would find by
// listing anew; no leader is told that it is a restore. Claims may have the volumes of others by that: of what a restore hands
// out, whoever restores has to take care, and of what storage it brings volumes back that was deleted.
func (m *model) goBack(now *state) {
	s, backup := &now.server, now.backup
	now.backup, now.travel = nil, wentBack
	for at, key := range m.keys {
		is, then := s.objects[at], backup.objects[at]
		same := is != nil && then != nil && is.object.GetUID() == then.object.GetUID()
		if key.Kind == obj.KindVolume && (!same && is != then || !now.storage.kept.has(at)) {
			now.storage.excused |= nameAt(at)
		}
		now.data[at].Freed = now.data[at].Of != ""
	}
	m.tellOfRestore(s, backup)
	s.objects, s.written = backup.objects, backup.written
	for who, l := range now.leaders {
		switch {
		case l == nil:
		case m.whileCalled && l.calls() && now.late == nil: // it is paused, and its call is the last thing that it does
			now.late, now.leaders[who] = l.call(), nil
		default:
			now.leaders[who] = l.outrun()
		}
	}
	if now.late != nil {
		now.late = new(*now.late)
		now.late.outrun = true
	}
}

// tellOfRestore tells those who watch: first of what is gone, then of all that is there, by name.
func (m *model) tellOfRestore(s, backup *tinyServer) {
	order := make([]int, len(m.keys))
	for at := range order {
		order[at] = at
	}
	slices.SortFunc(order, func(a, b int) int { return obj.CompareKeys(m.keys[a], m.keys[b]) })
	for _, at := range order {
		is, then := s.objects[at], backup.objects[at]
		if is != nil && (then == nil || then.object.GetUID() != is.object.GetUID()) {
			s.tell(at, change{revision: is, deleted: true})
		}
	}
	for _, at := range order {
		if then := backup.objects[at]; then != nil {
			s.tell(at, change{revision: then})
		}
	}
}

// callIsLate reports whether a leader is paused in a call of a hook.
func (s *state) callIsLate() bool { return s.late != nil && s.late.action.RunsHook() }

// outrun lets no request under way know that somebody has given a volume to a claim since it was decided on: neither a hook nor
// the write of a claim can be guarded by the version of the volume.
func (s *state) outrun() {
	for who, l := range s.leaders {
		if l != nil {
			overtaken := l.outrun()
			overtaken.resyncDue, overtaken.mayNotice = l.resyncDue, l.mayNotice
			s.leaders[who] = overtaken
		}
	}
}

// outrun returns a leader of which no request knows that the server was restored since it was decided on.
func (l *leader) outrun() *leader {
	copied := *l
	copied.resyncDue, copied.mayNotice = true, true
	for at, running := range l.running {
		if running != nil && (running.reads != 0 || running.answer != nil || running.action.Writes()) {
			overtaken := *running
			overtaken.outrun = true
			copied.running[at] = &overtaken
		}
	}
	return &copied
}

// noticeRestore notes that the leader has noticed the restore: it has to read all that it knows, but for one object that it has
// just read, before it destroys anything (W8).
func (m *model) noticeRestore(l *leader, but int) {
	l.noticed++
	l.mayNotice = false
	for _, object := range l.state.Objects() {
		if key := judge.KeyOf(object); key != (obj.Key{}) {
			l.unread |= nameAt(m.indexOf(key))
		}
	}
	if but >= 0 {
		l.unread &^= nameAt(but)
	}
}

// idle reports whether the leader has nothing to do and has been told of everything.
func (l *leader) idle(s *tinyServer) bool {
	for kind := range watched {
		if _, ok := l.next(s, kind); ok {
			return false
		}
	}
	return l.queue == 0 && l.busy() == 0
}

// resync compares what the caches have, which have been told of everything, with what the leader knows (W7). What is the same it
// does not sync: nothing is mended that way.
func (m *model) resync(s *tinyServer, l *leader) {
	l.resyncDue = false
	for at, key := range m.keys {
		if key.Kind != obj.KindVolume && key.Kind != obj.KindClaim {
			continue
		}
		known, stored := l.state.Known(key), s.objects[at]
		switch {
		case stored == nil && known != nil:
			m.enqueue(l, l.state.ObserveDeleted(known))
		case stored != nil && (known == nil || versionIn(known) != stored.version || known.GetUID() != stored.object.GetUID()):
			m.enqueue(l, l.state.Recheck(stored.object))
		}
	}
}

func asVolume(stored *revision) *corev1.PersistentVolume {
	if stored == nil {
		return nil
	}
	volume, _ := stored.object.(*corev1.PersistentVolume)
	return volume
}
