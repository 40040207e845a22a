package binding

import (
	"maps"
	"slices"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// links says which objects refer to an object. The zero value is ready to use.
type links map[obj.Key]map[obj.Key]struct{}

// move lets an object refer to another than before; the zero Key is none.
func (l *links) move(old, to, from obj.Key) {
	if old == to {
		return
	}
	if old != (obj.Key{}) {
		if delete((*l)[old], from); len((*l)[old]) == 0 {
			delete(*l, old)
		}
	}
	if to == (obj.Key{}) {
		return
	}
	if (*l)[to] == nil {
		zeromap.Put(l, to, map[obj.Key]struct{}{})
	}
	(*l)[to][from] = struct{}{}
}

// of are the objects that refer to an object, in order.
func (l links) of(to obj.Key) []obj.Key {
	return slices.SortedFunc(maps.Keys(l[to]), obj.CompareKeys)
}

// take forgets who refers to an object, and returns them in order.
func (l links) take(to obj.Key) []obj.Key {
	from := l.of(to)
	delete(l, to)
	return from
}

func (l links) clone() links {
	copied := maps.Clone(l)
	for to, from := range copied {
		copied[to] = maps.Clone(from)
	}
	return copied
}

// unique leaves out what comes a second time.
func unique(keys []obj.Key) []obj.Key {
	var once []obj.Key
	seen := make(map[obj.Key]struct{}, len(keys))
	for _, key := range keys {
		if _, twice := seen[key]; !twice {
			seen[key] = struct{}{}
			once = append(once, key)
		}
	}
	return once
}
