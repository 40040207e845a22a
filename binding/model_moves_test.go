package binding_test

import (
	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// move is one step of the world. Moves of the controllers alone, without faults, are the inside ones.
type move struct {
	verb verb
	who  uint8 // which leader
	at   uint8 // which name, kind or deed
}

type verb uint8

const (
	observes verb = iota // a change reaches a cache
	starts               // a sync begins, and decides
	sends                // what was decided reaches the server
	hears                // its answer is seen, and the sync decides again
	outside              // the first that is not a controller's own
	crashes              // all that a controller knew is lost
	collides             // a write is refused, for somebody else's was first
	misses               // a call does not arrive, and nobody can tell
	deafens              // a write takes effect, and its answer is lost
	dallies              // the answer is lost, and the write may arrive later
	arrives              // such a write arrives
	does                 // people do something
)

func (m move) inside() bool { return m.verb < outside }

// moves are all that can happen in the moment.
func (m *model) moves(now *moment) []move {
	found := m.found[:0]
	for who, l := range now.leaders {
		if l != nil {
			found = m.movesOf(found, now, uint8(who), l)
		}
	}
	if now.late != nil {
		found = append(found, move{verb: arrives})
	}
	if now.people > 0 {
		for at := range m.deeds {
			found = append(found, move{verb: does, at: uint8(at)})
		}
	}
	m.found = found
	return found
}

func (m *model) movesOf(found []move, now *moment, who uint8, l *leader) []move {
	for kind := range watched {
		if _, ok := l.next(&now.server, kind); ok {
			found = append(found, move{observes, who, uint8(kind)})
		}
	}
	free := l.busy() < m.workers
	for at := range l.queue.each {
		if free && l.running[at] == nil {
			found = append(found, move{starts, who, uint8(at)})
		}
	}
	for at, running := range l.running {
		switch {
		case running == nil:
		case running.answer != nil:
			found = append(found, move{hears, who, uint8(at)})
		default:
			found = append(found, move{sends, who, uint8(at)})
			found = m.faultsOf(found, now, who, uint8(at), running)
		}
	}
	if now.faults > 0 {
		found = append(found, move{verb: crashes, who: who})
	}
	return found
}

// faultsOf are what may happen to a call.
func (m *model) faultsOf(found []move, now *moment, who, at uint8, running *errand) []move {
	if now.faults == 0 {
		return found
	}
	for _, fault := range []verb{collides, misses, deafens, dallies} {
		happens := running.action.Writes()
		switch fault {
		case misses:
			happens = true
		case deafens:
			happens = happens || running.action.RunsHook()
		case dallies:
			happens = happens && now.late == nil
		}
		if !happens {
			continue
		}
		found = append(found, move{fault, who, at})
	}
	return found
}

// apply is the moment after the move; nil if nothing comes of it. What it does and breaks is in m.effect.
func (m *model) apply(now *moment, mv move) *moment {
	m.effect = effect{}
	if m.beyond(now, mv) {
		return nil
	}
	next := *now
	switch mv.verb {
	case observes, starts, sends, hears:
		m.step(&next, mv)
	case crashes:
		next.faults--
		next.leaders[mv.who] = begin(&next.server, m.rules)
	case collides, misses, deafens, dallies:
		next.faults--
		m.step(&next, mv)
	case arrives:
		m.perform(&next, next.late.action)
		next.late = nil
	case does:
		if !m.deeds[mv.at].do(&next) {
			return nil
		}
		next.people--
	}
	for who := range next.leaders {
		m.catchUp(now, &next, who)
	}
	return &next
}

// mostCreations is how often controllers may create volumes of one name. One whose cache lags for ever, and another that
// deletes what it creates, would go on without end, with a new UID each time.
const mostCreations = 2

// beyond reports whether a move is out of bounds: it would create a volume once too often.
func (m *model) beyond(now *moment, mv move) bool {
	action := binding.Action{}
	switch mv.verb {
	case sends, deafens:
		action = now.leaders[mv.who].running[mv.at].action
	case arrives:
		action = now.late.action
	}
	if action.Kind != binding.CreateVolume {
		return false
	}
	at := m.place(action.Target())
	return now.server.objects[at] == nil && now.server.created[at] >= mostCreations
}

// step is one of a leader.
func (m *model) step(next *moment, mv move) {
	l := next.leaders[mv.who]
	if mv.verb == observes || mv.verb == starts || mv.verb == hears {
		l = l.clone()
	} else {
		l = new(*l) // its state learns of nothing yet
	}
	next.leaders[mv.who] = l
	at := int(mv.at)
	switch mv.verb {
	case observes:
		m.observe(next, l, at)
	case starts:
		l.queue &^= place(at)
		m.decided(l, at, l.state.Start(m.keys[at]), 0, false)
	case hears:
		m.hear(next, l, at)
	default:
		m.send(next, l, at, mv.verb)
	}
}

// observe tells a leader of the next change of a kind.
func (m *model) observe(now *moment, l *leader, kind int) {
	m.effect.observed = append(m.effect.observed, observed{btoi(l == now.leaders[1]), kind})
	told, _ := l.next(&now.server, kind)
	if len(l.first[kind]) > 0 {
		l.first[kind] = l.first[kind][1:]
	} else {
		l.seen[kind]++
	}
	before := l.state.Known(m.keys[told.at])
	if told.deleted {
		m.enqueue(l, l.state.Forget(told.object))
	} else {
		m.enqueue(l, l.state.Observe(told.object))
	}
	m.judgeKnown(l, told.at, before)
}

// catchUp tells a leader what can make no difference: of a change that it knows already, or of a kind whose cache
// does not lag in this model. Telling it now is as good as later: nothing else can come to depend on it.
func (m *model) catchUp(before, now *moment, who int) {
	for kind := 0; kind < len(watched) && now.leaders[who] != nil; kind++ {
		for {
			l := now.leaders[who]
			told, ok := l.next(&now.server, kind)
			if !ok || !m.prompt[kind] && !m.stale(l, told) {
				break
			}
			if was := before.leaders[who]; was != nil && l.state == was.state {
				l = l.clone()
				now.leaders[who] = l
			}
			m.observe(now, l, kind)
		}
	}
}

// stale reports whether a change is no news to the leader.
func (m *model) stale(l *leader, told change) bool {
	uid := told.object.GetUID()
	known := l.state.Known(m.keys[told.at])
	if known == nil || known.GetUID() != uid {
		return l.state.Buried(uid)
	}
	return !told.deleted && m.things.of(known).version >= told.version
}

func (m *model) enqueue(l *leader, keys []obj.Key) {
	for _, key := range keys {
		l.queue |= place(m.place(key))
	}
}
