package index

import (
	"iter"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// btree is a set of entries in the order of their keys: a B-tree whose entries are in its leaves. The sizes in a node lie
// side by side, so that a search reads few cache lines, and no object before it has found its place. The zero value is
// empty. A btree is not safe for concurrent use.
type btree[E entry] struct{ root node[E] }

// entry is what a tree has in its leaves.
type entry interface {
	// compareTie compares the entry with a key of the same size. It is negative if the entry comes first.
	compareTie(key) int
}

// key is a place in the order of a tree: by size, among equal sizes by quantity, then by namespace and name.
type key struct {
	size            int64
	quantity        resource.Quantity
	namespace, name string // without a name, the key comes before all entries of its quantity
}

// bySize reports whether the size alone tells on which side of the key an entry is.
func (k *key) bySize() bool { return k.name == "" && exact(k.size) }

// maxNode is how many entries or children a node has at most. It is a compromise between few levels and short moves.
const maxNode = 128

type node[E entry] struct {
	sizes    []int64    // of each entry of a leaf, or of the first entry below each child
	entries  []E        // of a leaf
	children []*node[E] // of any other node
	count    int        // of all entries in or below the node
}

// len returns the number of entries.
func (t *btree[E]) len() int { return t.root.count }

// below returns the number of entries that come before the key.
func (t *btree[E]) below(k *key) int {
	count, n := 0, &t.root
	for !n.isLeaf() {
		i := n.child(k)
		for _, left := range n.children[:i] {
			count += left.count
		}
		n = n.children[i]
	}
	return count + n.before(k, 0)
}

// from returns the entries that do not come before the key, in order, with their sizes. The tree must not change
// meanwhile.
func (t *btree[E]) from(k *key) iter.Seq2[int64, E] {
	return func(yield func(int64, E) bool) { t.root.from(k, yield) }
}

// last returns the last entry that comes before the key, if there is one.
func (t *btree[E]) last(k *key) (last E, found bool) {
	n := &t.root
	for at := n.before(k, 0) - 1; at >= 0; at = n.before(k, 0) - 1 {
		if n.isLeaf() {
			return n.entries[at], true
		}
		n = n.children[at]
	}
	return last, false
}

// insert adds an entry. None with that key may be there already.
func (t *btree[E]) insert(k *key, e E) {
	if right := t.root.insert(k, e); right != nil {
		left := t.root
		t.root = node[E]{
			sizes:    []int64{left.sizes[0], right.sizes[0]},
			children: []*node[E]{&left, right},
			count:    left.count + right.count,
		}
	}
}

// remove deletes the entry with the key, and reports whether there was one.
func (t *btree[E]) remove(k *key) bool {
	removed := t.root.remove(k)
	for len(t.root.children) == 1 {
		t.root = *t.root.children[0]
	}
	return removed
}

func (n *node[E]) isLeaf() bool { return n.children == nil }

// before counts the entries, or the first entries below the children, that compare with the key below a limit: 0 for
// those that come before it, 1 for one that is equal too.
func (n *node[E]) before(k *key, limit int) int {
	bySize := k.bySize()
	low, high := 0, len(n.sizes)
	for low < high {
		middle := int(uint(low+high) >> 1)
		size := n.sizes[middle]
		if size < k.size || size == k.size && !bySize && n.first(middle).compareTie(*k) < limit {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (n *node[E]) first(i int) E {
	for !n.isLeaf() {
		n, i = n.children[i], 0
	}
	return n.entries[i]
}

// child returns the position of the child that the key belongs in.
func (n *node[E]) child(k *key) int { return max(0, n.before(k, 1)-1) }

func (n *node[E]) from(k *key, yield func(int64, E) bool) bool {
	if n.isLeaf() {
		for i := n.before(k, 0); i < len(n.sizes); i++ {
			if !yield(n.sizes[i], n.entries[i]) {
				return false
			}
		}
		return true
	}
	for _, child := range n.children[n.child(k):] {
		if !child.from(k, yield) {
			return false
		}
	}
	return true
}

// insert returns the node to stand to the right of this one, if it had to be split.
func (n *node[E]) insert(k *key, e E) (right *node[E]) {
	if n.isLeaf() {
		at := n.before(k, 0)
		n, at, right = n.room(at)
		n.sizes = slices.Insert(n.sizes, at, k.size)
		n.entries = slices.Insert(n.entries, at, e)
		n.count++
		return right
	}
	at := n.child(k)
	beside := n.children[at].insert(k, e)
	n.count++
	n.sizes[at] = n.children[at].sizes[0]
	if beside == nil {
		return nil
	}
	n, at, right = n.room(at + 1)
	n.sizes = slices.Insert(n.sizes, at, beside.sizes[0])
	n.children = slices.Insert(n.children, at, beside)
	n.recount()
	return right
}

// room makes room for one entry or child, and returns where it goes. A full node is split in the middle, but at its end
// if the entry goes there: so entries that come in order fill the nodes.
func (n *node[E]) room(at int) (*node[E], int, *node[E]) {
	if len(n.sizes) < maxNode {
		return n, at, nil
	}
	cut := len(n.sizes) / 2
	if at == len(n.sizes) {
		cut = at
	}
	right := n.split(cut)
	if at > cut || at == maxNode {
		return right, at - cut, right
	}
	return n, at, right
}

func (n *node[E]) split(cut int) *node[E] {
	right := &node[E]{sizes: cutOff(&n.sizes, cut), entries: cutOff(&n.entries, cut), children: cutOff(&n.children, cut)}
	n.recount()
	right.recount()
	return right
}

// cutOff removes the elements of a list from a position on, and returns them in a list of their own. Nil stays nil.
func cutOff[T any](list *[]T, at int) []T {
	at = min(at, len(*list))
	right := slices.Clone((*list)[at:])
	*list = slices.Delete(*list, at, len(*list))
	return right
}

func (n *node[E]) recount() {
	n.count = len(n.entries)
	for _, child := range n.children {
		n.count += child.count
	}
}

func (n *node[E]) remove(k *key) bool {
	if !n.isLeaf() {
		at := n.child(k)
		if !n.children[at].remove(k) {
			return false
		}
		n.count--
		n.tidy(at)
		return true
	}
	at := n.before(k, 0)
	if at == len(n.sizes) || n.sizes[at] != k.size || n.entries[at].compareTie(*k) != 0 {
		return false
	}
	n.sizes = slices.Delete(n.sizes, at, at+1)
	n.entries = slices.Delete(n.entries, at, at+1)
	n.count--
	return true
}

// tidy follows a removal below a child. An empty child goes, and one that has room for its neighbour joins it.
func (n *node[E]) tidy(at int) {
	child := n.children[at]
	if len(child.sizes) == 0 {
		n.drop(at)
		return
	}
	n.sizes[at] = child.sizes[0]
	left := max(0, at-1)
	if left+1 < len(n.children) && len(n.children[left].sizes)+len(n.children[left+1].sizes) <= maxNode/2 {
		n.children[left].join(n.children[left+1])
		n.drop(left + 1)
	}
}

func (n *node[E]) drop(at int) {
	n.sizes = slices.Delete(n.sizes, at, at+1)
	n.children = slices.Delete(n.children, at, at+1)
}

func (n *node[E]) join(right *node[E]) {
	n.sizes = append(n.sizes, right.sizes...)
	n.entries = append(n.entries, right.entries...)
	n.children = append(n.children, right.children...)
	n.count += right.count
}

// sizeOf returns a number that orders quantities: twice the quantity, or the odd number below it for a quantity that is
// not whole. Whatever is beyond 4 EiB is of one size, and so is whatever is negative. A greater quantity never has a
// smaller size, and equal sizes that are exact mean equal quantities.
func sizeOf(quantity resource.Quantity) int64 {
	whole, ok := quantity.AsInt64()
	switch {
	case ok && 0 <= whole && whole <= math.MaxInt64/2:
		return 2 * whole
	case quantity.Sign() < 0:
		return negative
	case quantities.Compare(quantity, *resource.NewQuantity(math.MaxInt64/2, resource.BinarySI)) > 0:
		return beyond
	}
	up := quantity.Value() // rounded up, so that the quantity is equal or less
	return 2*up + int64(quantity.CmpInt64(up))
}

const (
	beyond   = math.MaxInt64
	negative = -1
)

// exact reports whether all quantities of a size are equal.
func exact(size int64) bool { return size&1 == 0 }

// lowest returns the key before all entries of a quantity and of greater ones.
func lowest(quantity resource.Quantity) key {
	return key{size: sizeOf(quantity), quantity: quantity}
}

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
