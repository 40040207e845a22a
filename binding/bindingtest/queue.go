package bindingtest

import "github.com/pvbind/pvbind/binding"

// queue holds keys first in, first out, none twice.
type queue struct {
	keys []binding.Key
	in   map[binding.Key]bool
}

func (q *queue) add(keys ...binding.Key) {
	if q.in == nil {
		q.in = map[binding.Key]bool{}
	}
	for _, key := range keys {
		if !q.in[key] {
			q.in[key] = true
			q.keys = append(q.keys, key)
		}
	}
}

func (q *queue) pop() (binding.Key, bool) {
	if len(q.keys) == 0 {
		return binding.Key{}, false
	}
	key := q.keys[0]
	q.keys = q.keys[1:]
	delete(q.in, key)
	return key, true
}
