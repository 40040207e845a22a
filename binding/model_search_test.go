package binding_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding"
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
	depth                  int
	writes                 int // at most, from any moment, until it is settled
	broken                 string
	path                   []move // to where it broke
}

func (e exploration) String() string {
	return fmt.Sprintf("%8d states %9d edges %7d settled, depth %3d, settles within %2d writes", e.states, e.edges, e.settled, e.depth, e.writes)
}

// explore tries everything that can happen, breadth first, so that the first thing that breaks has the shortest
// path.
func (m *model) explore() exploration {
	first := m.beginning()
	known := map[fingerprint]uint32{m.print(first): 0}
	nodes := []visited{{}}
	var calm []inside
	found := exploration{}
	type open struct {
		*moment
		at uint32
	}
	frontier := []open{{first, 0}}
	fail := func(at uint32, broken string, last ...move) exploration {
		found.states, found.broken, found.path = len(nodes), broken, append(pathTo(nodes, at), last...)
		return found
	}
	for ; len(frontier) > 0; found.depth++ {
		var next []open
		for i, now := range frontier {
			frontier[i].moment = nil
			busy := false
			for _, mv := range slices.Clone(m.moves(now.moment)) {
				then := m.apply(now.moment, mv)
				busy = busy || mv.inside()
				if then == nil {
					continue
				}
				found.edges++
				if m.effect.broken != nil {
					return fail(now.at, joined(m.effect.broken), mv)
				}
				print := m.print(then)
				at, seen := known[print]
				if !seen {
					at = uint32(len(nodes))
					known[print] = at
					nodes = append(nodes, visited{now.at, mv})
					m.share(then)
					next = append(next, open{then, at})
				}
				if mv.inside() {
					calm = append(calm, inside{now.at, at, m.effect.writes > 0, agentOf(mv)})
				}
			}
			if !busy {
				found.settled++
				if broken := m.judgeSettled(now.moment); len(broken) > 0 {
					return fail(now.at, joined(broken))
				}
			}
		}
		if m.limit > 0 && len(nodes) > m.limit {
			return fail(0, fmt.Sprintf("there are more than %d states", m.limit))
		}
		frontier = next
		clear(m.memories) // or they would all be kept
	}
	found.states = len(nodes)
	writes, ring := settling(len(nodes), calm)
	if len(ring) > 0 {
		begins, round := m.circle(nodes, known, ring)
		return fail(begins, "X8: from here on the controllers can go round in a circle: "+m.listed(round))
	}
	found.writes = writes
	for _, changed := range m.modified() {
		found.broken = fmt.Sprintf("X6: %s was modified", m.keys[changed.at])
	}
	return found
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
	workers      int            // syncs at once in one controller
	people       uint8          // deeds in one run
	faults       uint8          // in one run
	long         [2]uint8       // deeds and faults in a long run, in place of these
	lags         []binding.Kind // the kinds of which caches lag
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
	var keys []binding.Key
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
		keys = append(keys, binding.VolumeKey(name))
	}
	m.things = newThings(append(keys, binding.PodsKey("default")))
	for _, d := range world.deedTexts {
		m.deeds = append(m.deeds, m.doing(d))
	}
	for kind := range watched {
		m.prompt[kind] = !slices.Contains(world.lags, watched[kind])
	}
	m.workers = max(1, m.workers)
	return m
}
