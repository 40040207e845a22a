package binding_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
)

// judgeSettled looks at a moment in which the controllers have nothing to do: X1, X3, X4 and what the C and V rules
// say of it, on what the server has; and a second pass over everything by every leader (X8).
func (m *model) judgeSettled(now *moment) (broken []string) {
	end := settledEnd{now.server.objects, now.storage}
	if verdict, ok := m.judged[end]; ok {
		broken = verdict
	} else {
		broken = judgedEnd(&now.server)
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

// settledEnd is what a settled moment is judged by.
type settledEnd struct {
	objects [maxNames]*thing
	storage tinyStorage
}

// judgedEnd is the judgement of the random histories, which need not settle by the same way.
func judgedEnd(s *tinyServer) []string {
	var objects []obj.Object
	for _, stored := range s.objects {
		if stored != nil {
			objects = append(objects, stored.object)
		}
	}
	world, judge := knowing(objects...), &history{}
	for _, volume := range world.Volumes {
		judge.judgeVolume(world, volume)
	}
	for _, claim := range world.Claims {
		judge.judgeClaim(world, claim)
	}
	return judge.broken
}

// secondPass syncs everything once more: nothing is written and nobody is told anything (X8).
func (m *model) secondPass(now *moment) (broken []string) {
	for who := range now.leaders {
		if now.leaders[who] == nil {
			continue
		}
		next := *now
		l := next.leaders[who].clone()
		next.leaders[who] = l
		for at, key := range m.keys {
			if known := key.Kind == obj.KindVolume || key.Kind == obj.KindClaim; known && now.server.objects[at] != nil {
				l.queue |= place(at)
			}
		}
		broken = append(broken, m.drain(&next, l)...)
	}
	return broken
}

// drain lets a leader do all that it has to, in the order of the names.
func (m *model) drain(now *moment, l *leader) (broken []string) {
	for range small.endless {
		at, sync := -1, move{}
		for candidate, running := range l.running {
			if running != nil {
				at, sync.verb = candidate, sends
				if running.answer != nil {
					sync.verb = hears
				}
			}
		}
		if at < 0 {
			if l.queue == 0 {
				return broken
			}
			for first := range l.queue.each {
				at, sync.verb = first, starts
				break
			}
		}
		m.effect = effect{}
		switch sync.verb {
		case starts:
			l.queue &^= place(at)
			m.decided(l, at, l.state.Start(m.keys[at]), 0, false)
		case sends:
			m.send(now, l, at, sends)
		case hears:
			m.hear(now, l, at)
		}
		broken = append(broken, m.effect.broken...)
		if want := m.says[display(m.keys[at])]; l.running[at] == nil && !strings.HasPrefix(m.effect.said, want) {
			broken = append(broken, fmt.Sprintf("X7: the sync of %s ends with %q, and not with %s", m.keys[at], m.effect.said, want))
		}
		if m.effect.writes > 0 || m.effect.events > 0 {
			return append(broken, fmt.Sprintf("X8: a second pass over %s makes %d writes and sends %d events", m.keys[at], m.effect.writes, m.effect.events))
		}
	}
	return append(broken, "X8: a second pass has no end")
}

func joined(broken []string) string { return strings.Join(broken, "\n") }
