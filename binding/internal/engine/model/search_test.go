package model_test

import (
	"fmt"
	"slices"
	"strings"
)

// visited is a state that was found, and the move that led there.
type visited struct {
	from uint32
	by   move
}

// edge is a move of the controllers between two states.
type edge struct {
	from, to uint32
	writes   bool
	agent    uint8
}

// agentOf numbers who takes a move: a cache of a controller, which are the first numbers, or a sync of it. Whoever may
// take a move at every state has to take one some time.
func agentOf(mv move) uint8 {
	switch mv.kind {
	case observes:
		return mv.who*uint8(len(watched)) + mv.at
	case resyncs:
		return uint8(len(watched))*2 + 2*maxNames + mv.who
	}
	return uint8(len(watched))*2 + mv.who*maxNames + mv.at
}

// exploration is what was found.
type exploration struct {
	states, edges, settled int
	writes                 int // at most, from any state, until it is settled
	broken                 string
	path                   []move // to where it broke
	cells                  coverage
}

func (e exploration) String() string {
	return fmt.Sprintf("%8d states %9d edges %7d settled, settles within %2d writes", e.states, e.edges, e.settled, e.writes)
}

// explore tries everything that can happen. It goes into the depth, which takes little memory, and begins anew in the
// breadth where something breaks, so that what it tells of has the shortest path.
func (m *model) explore() exploration {
	found := m.exploreIn(depthFirst)
	if found.broken == "" {
		return found
	}
	if shortest := m.exploreIn(breadthFirst); shortest.broken != "" {
		return shortest
	}
	return found
}

func (m *model) exploreIn(order searchOrder) exploration {
	first := m.beginning()
	s := &search{model: m, known: map[fingerprint]uint32{m.print(first): 0}, nodes: []visited{{}}}
	s.frontier = frontier{order: order, then: []unexplored{{first, 0}}, nextDepth: func() { clear(m.memories) }} // or all would be kept
	for now, ok := s.frontier.pop(); ok; now, ok = s.frontier.pop() {
		if s.expand(now); s.broken != "" {
			break
		}
		if m.limit > 0 && len(s.nodes) > m.limit {
			s.fail(0, fmt.Sprintf("there are more than %d states", m.limit))
			break
		}
	}
	if s.broken == "" {
		s.judgeAll()
	}
	s.states, s.cells = len(s.nodes), coverageOf(len(s.nodes), s.steps)
	return s.exploration
}

// search is an exploration under way.
type search struct {
	*model
	exploration
	frontier        frontier
	known           map[fingerprint]uint32
	nodes           []visited
	controllerEdges []edge
	steps           []step // in the worlds of trouble
}

func (s *search) fail(at uint32, broken string, last ...move) {
	s.broken, s.path = broken, append(pathTo(s.nodes, at), last...)
}

// expand takes every move that there is in a state.
func (s *search) expand(now unexplored) {
	busy := now.callIsLate() && now.awaitsCalls()
	for _, mv := range slices.Clone(s.moves(now.state)) {
		then := s.apply(now.state, mv)
		busy = busy || mv.byController()
		if then == nil {
			continue
		}
		s.edges++
		if s.effect.broken != nil {
			s.fail(now.at, joined(s.effect.broken), mv)
			return
		}
		destroys := s.effect.destroys
		at := s.visit(then, visited{now.at, mv})
		if s.troubled {
			s.steps = append(s.steps, step{now.at, at, s.troubleOf(mv), troubleBeside(now.state, mv), destroys})
		}
		if mv.byController() {
			s.controllerEdges = append(s.controllerEdges, edge{now.at, at, s.effect.writes > 0, agentOf(mv)})
		}
	}
	if busy {
		return
	}
	s.settled++
	if broken := s.judgeSettled(now.state); len(broken) > 0 {
		s.fail(now.at, joined(broken))
	}
}

// visit returns the number of a state, which is looked at later if it is a new one.
func (s *search) visit(then *state, by visited) uint32 {
	print := s.print(then)
	at, seen := s.known[print]
	if !seen {
		at = uint32(len(s.nodes))
		s.known[print] = at
		s.nodes = append(s.nodes, by)
		if s.frontier.order == breadthFirst { // else few are open at a time
			s.share(then)
		}
		s.frontier.push(unexplored{then, at})
	}
	return at
}

// judgeAll looks at what can be said of all states together: that they settle, and that nothing shared was modified.
func (s *search) judgeAll() {
	writes, ring := settling(len(s.nodes), s.controllerEdges)
	if len(ring) > 0 {
		begins, round := s.cyclePath(s.nodes, s.known, ring)
		s.fail(begins, "X8: from here on the controllers can go round in a cycle: "+s.listed(round))
		return
	}
	s.writes = writes
	for _, changed := range s.modified() {
		s.broken = fmt.Sprintf("X6: %s was modified", s.keys[changed.at])
	}
}

// share lets leaders that remember the same keep it once, for most of what a state takes is that. The same is: the
// same versions, calls and dead among all whose UIDs are known or still to come. It has to follow the print of the state.
func (m *model) share(now *state) {
	at := 0
	for who, l := range now.leaders {
		if l == nil {
			continue
		}
		remembered := m.notes.states[at]
		at++
		if same := m.memories[remembered]; same == nil {
			m.memories[remembered] = l.state
		} else if same != l.state {
			shared := *l
			shared.state = same
			now.leaders[who] = &shared
		}
	}
}

func pathTo(nodes []visited, at uint32) []move {
	var path []move
	for ; at != 0; at = nodes[at].from {
		path = append(path, nodes[at].by)
	}
	slices.Reverse(path)
	return path
}

// listed returns moves in words.
func (m *model) listed(moves []move) string {
	s := &scenarioWriter{model: m}
	var words []string
	for _, mv := range moves {
		words = append(words, s.commandFor(mv))
	}
	return strings.Join(words, ", ")
}

// searchOrder is in which order states are looked at. They are the same ones, whatever the order.
type searchOrder string

const (
	depthFirst   searchOrder = "DepthFirst"
	breadthFirst searchOrder = "BreadthFirst"
)

// frontier holds the states that were found and are still to be expanded.
type frontier struct {
	order     searchOrder
	now, then []unexplored // of this depth, and of the next; depth first all of it is in then
	nextDepth func()       // to the next depth
}

// unexplored is a state that was found and not yet expanded, with its number.
type unexplored struct {
	*state
	at uint32
}

func (a *frontier) push(o unexplored) { a.then = append(a.then, o) }

// pop takes the state to expand next; false if none is left.
func (a *frontier) pop() (next unexplored, ok bool) {
	if a.order == depthFirst {
		last := len(a.then) - 1
		if last < 0 {
			return unexplored{}, false
		}
		next, a.then[last] = a.then[last], unexplored{}
		a.then = a.then[:last]
		return next, true
	}
	if len(a.now) == 0 {
		a.now, a.then = a.then, nil
		a.nextDepth()
	}
	if len(a.now) == 0 {
		return unexplored{}, false
	}
	next, a.now[0] = a.now[0], unexplored{}
	a.now = a.now[1:]
	return next, true
}
