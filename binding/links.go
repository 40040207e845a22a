package binding

import (
	"maps"
	"slices"
)

// links says which objects refer to an object. The zero value is ready to use.
type links map[Key]map[Key]struct{}

// move lets an object refer to another than before; the zero Key is none.
func (l *links) move(old, to, from Key) {
	if old == to {
		return
	}
	if old != (Key{}) {
		if delete((*l)[old], from); len((*l)[old]) == 0 {
			delete(*l, old)
		}
	}
	if to == (Key{}) {
		return
	}
	if (*l)[to] == nil {
		put(l, to, map[Key]struct{}{})
	}
	(*l)[to][from] = struct{}{}
}

// of are the objects that refer to an object, in order.
func (l links) of(to Key) []Key {
	return slices.SortedFunc(maps.Keys(l[to]), compareKeys)
}

// take forgets who refers to an object, and returns them in order.
func (l links) take(to Key) []Key {
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
func unique(keys []Key) []Key {
	var once []Key
	seen := make(map[Key]struct{}, len(keys))
	for _, key := range keys {
		if _, twice := seen[key]; !twice {
			seen[key] = struct{}{}
			once = append(once, key)
		}
	}
	return once
}
