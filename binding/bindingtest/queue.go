package bindingtest

import (
	"github.com/pvbind/pvbind/binding/obj"
)

// queue holds keys first in, first out, none twice.
type queue struct {
	keys []obj.Key
	in   map[obj.Key]bool
}

func (q *queue) add(keys ...obj.Key) {
	if q.in == nil {
		q.in = map[obj.Key]bool{}
	}
	for _, key := range keys {
		if !q.in[key] {
			q.in[key] = true
			q.keys = append(q.keys, key)
		}
	}
}

func (q *queue) pop() (obj.Key, bool) {
	if len(q.keys) == 0 {
		return obj.Key{}, false
	}
	key := q.keys[0]
	q.keys = q.keys[1:]
	delete(q.in, key)
	return key, true
}
