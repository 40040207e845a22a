package binding_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// model is a small world and what may happen in it: bounds within which everything is tried.
type model struct {
	modelWorld
	*things
	rows   map[string]row
	deeds  []deed
	prompt [len(watched)]bool

	effect effect // of the last move
	found  []move
	notes  notes
	judged map[settledEnd][]string

	memories map[fingerprint]*binding.State
}

// visited is a moment that was come across.
type visited struct {
	from uint32
	by   move
}

// inside is a move of the controllers between two moments.
type inside struct {
	from, to uint32
	writes   bool
	agent    uint8
}

// agentOf numbers who takes a move: a cache of a controller, which are the first numbers, or a sync of it. Whoever may
// take a move at every moment has to take one some time.
func agentOf(mv move) uint8 {
	if mv.verb == observes {
		return mv.who*uint8(len(watched)) + mv.at
	}
	return uint8(len(watched))*2 + mv.who*maxNames + mv.at
}

// exploration is what was found.
type exploration struct {
	states, edges, settled int
	writes                 int // at most, from any moment, until it is settled
	broken                 string
	path                   []move // to where it broke
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
	s.agenda = agenda{order: order, then: []open{{first, 0}}, turned: func() { clear(m.memories) }} // or all would be kept
	for now, ok := s.agenda.take(); ok; now, ok = s.agenda.take() {
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
	s.states = len(s.nodes)
	return s.exploration
}

// search is an exploration under way.
type search struct {
	*model
	exploration
	agenda agenda
	known  map[fingerprint]uint32
	nodes  []visited
	calm   []inside
}

func (s *search) fail(at uint32, broken string, last ...move) {
	s.broken, s.path = broken, append(pathTo(s.nodes, at), last...)
}

// expand takes every move that there is in a moment.
func (s *search) expand(now open) {
	busy := false
	for _, mv := range slices.Clone(s.moves(now.moment)) {
		then := s.apply(now.moment, mv)
		busy = busy || mv.inside()
		if then == nil {
			continue
		}
		s.edges++
		if s.effect.broken != nil {
			s.fail(now.at, joined(s.effect.broken), mv)
			return
		}
		at := s.meet(then, visited{now.at, mv})
		if mv.inside() {
			s.calm = append(s.calm, inside{now.at, at, s.effect.writes > 0, agentOf(mv)})
		}
	}
	if busy {
		return
	}
	s.settled++
	if broken := s.judgeSettled(now.moment); len(broken) > 0 {
		s.fail(now.at, joined(broken))
	}
}

// meet is the number of a moment, which is looked at later if it is a new one.
func (s *search) meet(then *moment, by visited) uint32 {
	print := s.print(then)
	at, seen := s.known[print]
	if !seen {
		at = uint32(len(s.nodes))
		s.known[print] = at
		s.nodes = append(s.nodes, by)
		if s.agenda.order == breadthFirst { // else few are open at a time
			s.share(then)
		}
		s.agenda.put(open{then, at})
	}
	return at
}

// judgeAll looks at what can be said of all moments together: that they settle, and that nothing shared was modified.
func (s *search) judgeAll() {
	writes, ring := settling(len(s.nodes), s.calm)
	if len(ring) > 0 {
		begins, round := s.circle(s.nodes, s.known, ring)
		s.fail(begins, "X8: from here on the controllers can go round in a circle: "+s.listed(round))
		return
	}
	s.writes = writes
	for _, changed := range s.modified() {
		s.broken = fmt.Sprintf("X6: %s was modified", s.keys[changed.at])
	}
}

// share lets leaders that remember the same keep it once, for most of what a moment takes is that. The same is: the
// same versions, calls and dead among all whose UIDs are known or still to come. It has to follow the print of the moment.
func (m *model) share(now *moment) {
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

// listed are moves in words.
func (m *model) listed(moves []move) string {
	s := &storyteller{model: m}
	var words []string
	for _, mv := range moves {
		words = append(words, s.commandFor(mv))
	}
	return strings.Join(words, ", ")
}

// beginning is the first moment.
func (m *model) beginning() *moment {
	now := &moment{server: tinyServer{things: m.things}, people: m.people, faults: m.faults}
	for _, name := range m.start {
		object, ok := m.rows[name].object(&now.server)
		if !ok {
			panic("the row of " + name + " refers to something that is not there")
		}
		now.server.create(object)
		m.stock(now, m.place(keyOfAny(object)))
	}
	now.server.log = [len(watched)][]change{}
	for who := range m.leaders {
		now.leaders[who] = begin(&now.server, m.rules)
	}
	for who := range now.leaders {
		m.catchUp(&moment{}, now, who)
	}
	if m.settledFirst {
		m.settle(now)
	}
	return now
}

// settle takes steps, the first there is each time, until there is none left.
func (m *model) settle(now *moment) {
	for range small.endless {
		moves := m.moves(now)
		first := slices.IndexFunc(moves, move.inside)
		if first < 0 {
			return
		}
		*now = *m.apply(now, moves[first])
	}
	panic("the beginning does not settle")
}

// modelWorld is what a model is about, and its bounds.
type modelWorld struct {
	name         string
	rules        binding.Rules
	tables       string            // all objects that there can be, as in a scenario
	absent       []string          // of those, the ones that do not exist at first
	says         map[string]string // objects of which the sync has to end with an error, with its beginning (X7)
	made         []string          // names of volumes that a provisioner may make
	deedTexts    []deed
	leaders      int
	workers      int        // syncs at once in one controller
	people       uint8      // deeds in one run
	faults       uint8      // in one run
	long         [2]uint8   // deeds and faults in a long run, in place of these
	lags         []obj.Kind // the kinds of which caches lag
	settledFirst bool
	limit        int // of states; zero: none
	start        []string
	sabotage     sabotage // what is broken on purpose
}

// newModel readies a world.
func newModel(world modelWorld) *model {
	m := &model{modelWorld: world, judged: map[settledEnd][]string{}, memories: map[fingerprint]*binding.State{}}
	rows, names := rowsIn(world.tables)
	m.rows = rows
	var keys []obj.Key
	for _, name := range names {
		_, key, err := keyNamed(name)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
		if !slices.Contains(world.absent, name) {
			m.start = append(m.start, name)
		}
	}
	for _, name := range world.made {
		keys = append(keys, obj.VolumeKey(name))
	}
	m.things = newThings(append(keys, obj.PodsKey("default"), obj.AttachmentsKey()))
	for _, d := range world.deedTexts {
		m.deeds = append(m.deeds, m.doing(d))
	}
	for kind := range watched {
		m.prompt[kind] = !slices.Contains(world.lags, watched[kind])
	}
	m.workers = max(1, m.workers)
	return m
}
