package binding

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
)

// tombstones are the UIDs of objects that are known to be gone, so that a late reply or a slow cache does
// not bring one back. They are kept for the last few thousand deletions, in two generations: what comes
// later than that has lost its race by minutes.
type tombstones struct {
	young, old map[types.UID]struct{}
}

const generation = 4096

func (t *tombstones) bury(uid types.UID) {
	if uid == "" {
		return // it would stand for every object that has none
	}
	if len(t.young) >= generation {
		t.old, t.young = t.young, nil
	}
	zeromap.Put(&t.young, uid, struct{}{})
}

func (t *tombstones) has(uid types.UID) bool {
	_, young := t.young[uid]
	_, old := t.old[uid]
	return young || old
}

// exhume takes it back that an object is gone.
func (t *tombstones) exhume(uid types.UID) {
	delete(t.young, uid)
	delete(t.old, uid)
}

func (t tombstones) clone() tombstones {
	return tombstones{young: maps.Clone(t.young), old: maps.Clone(t.old)}
}
