package schedulerplugin

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/scheduling"
)

const stateKey framework.StateKey = Name

// podState is what is kept of a pod with claims while it is scheduled. Filter and Score use it from many goroutines.
type podState struct {
	planned atomic.Pointer[planned] // nil once the pod has its node

	mutex sync.Mutex
	// single are the plans for nodes that were not known, or not in that version, when the pod was planned, and for the one that it has.
	single     map[string]scheduling.Plan
	assumption *scheduling.Assumption // nil if there is nothing to bind
}

// planned are the plans of a pod for all nodes.
type planned struct {
	places *places
	plans  []scheduling.Plan
}

// Clone returns the state itself: preemption and nominated pods change no plan, and what was assumed for a pod is assumed once.
func (s *podState) Clone() framework.StateData { return s }

// stateOf returns the state of a pod; nil if the pod has no claims.
func stateOf(state framework.CycleState) *podState {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	return data.(*podState)
}

// find returns the plan for a node. One for it alone is newer than the one among all.
func (s *podState) find(node string) (scheduling.Plan, bool) {
	s.mutex.Lock()
	plan, known := s.single[node]
	s.mutex.Unlock()
	if all := s.planned.Load(); all != nil && !known {
		if at, listed := all.places.at[node]; listed {
			return all.plans[at], true
		}
	}
	return plan, known
}

// add adds a plan for a node.
func (s *podState) add(plan scheduling.Plan) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.single == nil {
		s.single = map[string]scheduling.Plan{}
	}
	s.single[plan.Node.Name] = plan
}

// reserve keeps what is assumed for the pod, and of its plans only the one for its node: the pod may have to wait for a long time.
func (s *podState) reserve(plan scheduling.Plan, assumption *scheduling.Assumption) {
	s.add(plan)
	s.planned.Store(nil)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.assumption = assumption
}

// assumed returns what is assumed for the pod; nil if nothing is.
func (s *podState) assumed() *scheduling.Assumption {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.assumption
}

// revert ends what is assumed for the pod.
func (s *podState) revert() {
	s.mutex.Lock()
	assumption := s.assumption
	s.assumption = nil
	s.mutex.Unlock()
	if assumption != nil {
		assumption.Revert()
	}
}

// places says where each node is in a list. The list has the same nodes for nearly all pods.
type places struct {
	names []string
	at    map[string]int
}

func newPlaces(nodes []*corev1.Node) *places {
	p := &places{make([]string, len(nodes)), make(map[string]int, len(nodes))}
	for i, node := range nodes {
		p.names[i], p.at[node.Name] = node.Name, i
	}
	return p
}

// are reports whether the list has these nodes.
func (p *places) are(nodes []*corev1.Node) bool {
	if p == nil || len(p.names) != len(nodes) {
		return false
	}
	for i, node := range nodes {
		if p.names[i] != node.Name {
			return false
		}
	}
	return true
}
