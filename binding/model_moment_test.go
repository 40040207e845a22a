package binding_test

import (
	"math/bits"

	"github.com/pvbind/pvbind/binding"
)

// moment is a state of the model's whole world. It is never changed, only copied; what a move leaves as it was is
// shared between a moment and the next.
type moment struct {
	server  tinyServer
	storage tinyStorage
	leaders [2]*leader // the second may be missing
	late    *errand    // a write whose sender has given up, and which may still arrive
	asked   bool       // the provisioner has seen that the claim asked for it
	people  uint8      // what people may still do
	faults  uint8      // what may still go wrong
}

// leader is a controller of the model. Two of them are an old leader that has not noticed and a new one.
type leader struct {
	state   *binding.State
	first   [len(watched)][]change // of the list that it began with: not seen yet
	seen    [len(watched)]int      // of the server's log
	queue   places
	running [maxNames]*errand
	doubts  places // what it wrote without hearing of it, and has not read since
}

// errand is a sync under way: what it asked for, and the answer once there is one. It is never changed either.
type errand struct {
	action  binding.Action
	target  int
	content uint32 // of what it writes or calls a hook with; zero if it reads
	version uint8
	reads   places // in this sync, since its last write
	failed  bool   // a hook of this sync did, or nobody knows: the sync is to be repeated
	answer  *answer
}

// places is a set of names.
type places uint16

func place(at int) places { return 1 << at }

func (p places) has(at int) bool { return p&place(at) != 0 }

// each yields the names, in order.
func (p places) each(yield func(int) bool) {
	for ; p != 0; p &= p - 1 {
		if !yield(bits.TrailingZeros16(uint16(p))) {
			return
		}
	}
}

// next is the change of a kind that the leader is told of next; false if there is none.
func (l *leader) next(s *tinyServer, kind int) (change, bool) {
	if len(l.first[kind]) > 0 {
		return l.first[kind][0], true
	}
	if l.seen[kind] < len(s.log[kind]) {
		return s.log[kind][l.seen[kind]], true
	}
	return change{}, false
}

// pending are all changes of a kind that the leader has not been told of.
func (l *leader) pending(s *tinyServer, kind int, yield func(change)) {
	for _, told := range l.first[kind] {
		yield(told)
	}
	for _, told := range s.log[kind][l.seen[kind]:] {
		yield(told)
	}
}

// busy is how many syncs are under way.
func (l *leader) busy() (n int) {
	for _, running := range l.running {
		if running != nil {
			n++
		}
	}
	return n
}

// begin is a leader that knows nothing yet, and is going to be told what the server has now.
func begin(s *tinyServer, rules binding.Rules) *leader {
	l := &leader{state: binding.NewState(rules)}
	for kind := range watched {
		l.seen[kind] = len(s.log[kind])
		for at, stored := range s.objects {
			if stored != nil && s.things.keys[at].Kind == watched[kind] {
				l.first[kind] = append(l.first[kind], change{thing: stored})
			}
		}
	}
	return l
}

func (l *leader) clone() *leader {
	copied := *l
	copied.state = l.state.Clone()
	return &copied
}
