package apitest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// journal has the changes of the objects of one kind, and the state that they led to. Objects in it are never modified.
type journal struct {
	watch   *bindingtest.Watch
	state   map[obj.Key]obj.Object
	changes []change
	version uint64 // of the newest change
	floor   uint64 // changes up to this version are forgotten
}

type change struct {
	bindingtest.Change
	before  obj.Object // nil if there was none
	version uint64
}

func newJournal(watch *bindingtest.Watch) *journal {
	j := &journal{watch: watch, state: map[obj.Key]obj.Object{}}
	j.catchUp()
	j.compact()
	return j
}

// catchUp reads the changes since the last call.
func (j *journal) catchUp() {
	for next, ok := j.watch.Next(); ok; next, ok = j.watch.Next() {
		typed(next.Object)
		key, _ := bindingtest.KeyOf(next.Object)
		before := j.state[key]
		if next.Type == bindingtest.Deleted {
			delete(j.state, key)
		} else {
			j.state[key] = next.Object
		}
		version, _ := strconv.ParseUint(next.Object.GetResourceVersion(), 10, 64)
		j.version = max(j.version, version)
		j.changes = append(j.changes, change{next, before, version})
	}
}

func (j *journal) compact() {
	j.catchUp()
	j.changes, j.floor = nil, j.version
}

// objects returns those of a selection that there are now, in order.
func (j *journal) objects(selected selection) []obj.Object {
	var objects []obj.Object
	keys := slices.SortedFunc(maps.Keys(j.state), func(a, b obj.Key) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if selected.matches(j.state[key]) {
			objects = append(objects, j.state[key])
		}
	}
	return objects
}

// since returns the changes after a version.
func (j *journal) since(version uint64) []change {
	var later []change
	for _, change := range j.changes {
		if change.version > version {
			later = append(later, change)
		}
	}
	return later
}
