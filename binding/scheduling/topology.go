package scheduling

import (
	"sync"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/requirements"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
)

// topologies has the node topologies of capacities, parsed. Only large ones are kept, for no pod is to wait for that again
// because of a capacity that it does not even use (X9).
type topologies struct {
	mutex  sync.Mutex
	parsed map[*storagev1.CSIStorageCapacity]*requirements.Set
}

const (
	// maxUnkept is how many labels, expressions and values a topology may have to be parsed for each plan.
	maxUnkept = 64
	// maxKept is how many are kept. Capacities change: when it is reached, all are forgotten.
	maxKept = 1024
)

// topologyOf returns what the capacity requires of its nodes; nil if that is malformed.
func (a *Assumptions) topologyOf(capacity *storagev1.CSIStorageCapacity) *requirements.Set {
	if a == nil || !largeTopology(capacity) {
		return parseTopology(capacity)
	}
	return a.topologies.of(capacity)
}

func (t *topologies) of(capacity *storagev1.CSIStorageCapacity) *requirements.Set {
	t.mutex.Lock()
	parsed, kept := t.parsed[capacity]
	t.mutex.Unlock()
	if kept {
		return parsed
	}
	parsed = parseTopology(capacity) // not under the lock, and perhaps twice
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.parsed) >= maxKept {
		t.parsed = nil
	}
	zeromap.Put(&t.parsed, capacity, parsed)
	return parsed
}

func parseTopology(capacity *storagev1.CSIStorageCapacity) *requirements.Set {
	parsed, err := requirements.OfSelector(capacity.NodeTopology)
	if err != nil {
		return nil
	}
	return parsed
}

func largeTopology(capacity *storagev1.CSIStorageCapacity) bool {
	expressions := capacity.NodeTopology.MatchExpressions
	parts := len(capacity.NodeTopology.MatchLabels) + len(expressions)
	for i := 0; i < len(expressions) && parts <= maxUnkept; i++ {
		parts += len(expressions[i].Values)
	}
	return parts > maxUnkept
}
