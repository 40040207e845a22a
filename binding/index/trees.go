package index

import (
	"slices"

	"github.com/pvbind/pvbind/accessmode"
)

// modeTrees has the entries of each set of access modes in a tree of its own. The smallest sets come first, and none is
// empty.
type modeTrees[E entry] []modeTree[E]

// modeTree is the entries of one set of access modes.
type modeTree[E entry] struct {
	modes accessmode.Set
	btree[E]
}

// record is an entry with its place in modeTrees.
type record[E entry] struct {
	entry E
	key   key
	modes accessmode.Set
}

// len returns the number of entries.
func (t modeTrees[E]) len() int {
	count := 0
	for i := range t {
		count += t[i].len()
	}
	return count
}

// insert adds an entry and returns the trees, as append does.
func (t modeTrees[E]) insert(r record[E]) modeTrees[E] {
	at, found := t.find(r.modes)
	if !found {
		t = slices.Insert(t, at, modeTree[E]{modes: r.modes})
	}
	t[at].insert(&r.key, r.entry)
	return t
}

// remove deletes an entry and returns the trees. One that is not there is no error.
func (t modeTrees[E]) remove(r record[E]) modeTrees[E] {
	at, found := t.find(r.modes)
	if found && t[at].remove(&r.key) && t[at].len() == 0 {
		t = slices.Delete(t, at, at+1)
	}
	return t
}

// find returns the position of the tree, or where it belongs.
func (t modeTrees[E]) find(modes accessmode.Set) (at int, found bool) {
	for at < len(t) && t[at].modes != modes && accessmode.Compare(t[at].modes, modes) <= 0 {
		at++
	}
	return at, at < len(t) && t[at].modes == modes
}

// labelTrees has the entries of each label in modeTrees of their own.
type labelTrees[E entry] map[label]modeTrees[E]

// label is a label of a volume or a node, with its value.
type label struct{ key, value string }

// update makes a change to the trees of a label.
func (t *labelTrees[E]) update(l label, r record[E], change func(modeTrees[E], record[E]) modeTrees[E]) {
	setList(t, l, change((*t)[l], r))
}
