package index

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// rank is a place in an order: by size, among equal sizes exactly by quantity, then by name. One without
// a name comes before all items of its quantity.
type rank struct {
	size            int64
	quantity        resource.Quantity
	namespace, name string
}

// settled reports whether the size alone tells where the rank stands.
func (r *rank) settled() bool { return r.name == "" && exact(r.size) }

// ranked is what an order is of.
type ranked interface {
	// tie compares the item with a rank of the same size; negative: the item comes first.
	tie(rank) int
	// amount is the quantity by which it is ranked.
	amount() resource.Quantity
}

// btree is a set of items in the order of their ranks, a B+ tree: sizes lie side by side, so that a
// search looks at few cache lines and at no object before it has found its place. The zero value is
// empty. It does not guard itself against concurrent use.
type btree[T ranked] struct{ root *node[T] }

// maxNode is how many entries a node holds. It is a compromise between few levels and short moves.
const maxNode = 128

type node[T ranked] struct {
	sizes    []int64    // of each item of a leaf, or of the first item below each child
	items    []T        // of a leaf
	children []*node[T] // of any other node
	count    int        // of all items in or below the node

	previous, next *node[T] // leaves beside a leaf
}

func (n *node[T]) isLeaf() bool { return n.children == nil }

func (n *node[T]) first(i int) T {
	for !n.isLeaf() {
		n, i = n.children[i], 0
	}
	return n.items[i]
}

// before counts the entries whose (first) item compares with the rank below a limit: 0 for those that
// come before it, 1 for those that are equal too.
func (n *node[T]) before(r *rank, limit int) int {
	settled := r.settled()
	low, high := 0, len(n.sizes)
	for low < high {
		middle := int(uint(low+high) >> 1)
		size := n.sizes[middle]
		if size < r.size || size == r.size && !settled && n.first(middle).tie(*r) < limit {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// child is the position of the child that has the rank's place.
func (n *node[T]) child(r *rank) int { return max(0, n.before(r, 1)-1) }

func (o *btree[T]) len() int {
	if o == nil || o.root == nil {
		return 0
	}
	return o.root.count
}

// below is the number of items that come before the rank.
func (o *btree[T]) below(r *rank) int {
	if o.len() == 0 {
		return 0
	}
	count, n := 0, o.root
	for !n.isLeaf() {
		i := n.child(r)
		for _, left := range n.children[:i] {
			count += left.count
		}
		n = n.children[i]
	}
	return count + n.before(r, 0)
}

// cursor is at an item of an order, or past its end. It is good until the next change.
type cursor[T ranked] struct {
	leaf *node[T]
	at   int
}

// seek is at the first item that does not come before the rank.
func (o *btree[T]) seek(r *rank) cursor[T] {
	if o.len() == 0 {
		return cursor[T]{}
	}
	n := o.root
	for !n.isLeaf() {
		n = n.children[n.child(r)]
	}
	return cursor[T]{leaf: n, at: n.before(r, 0)}.normal()
}

// start is at the first item of the quantity of the one that the cursor is at.
func (o *btree[T]) start(c cursor[T]) cursor[T] {
	return o.seek(&rank{size: c.size(), quantity: c.item().amount()})
}

// last is at the last item that comes before the rank.
func (o *btree[T]) last(r *rank) cursor[T] {
	if o.len() == 0 {
		return cursor[T]{}
	}
	n := o.root
	for !n.isLeaf() {
		n = n.children[n.child(r)]
	}
	return cursor[T]{leaf: n, at: n.before(r, 0)}.back()
}

func (c cursor[T]) ok() bool    { return c.leaf != nil }
func (c cursor[T]) item() T     { return c.leaf.items[c.at] }
func (c cursor[T]) size() int64 { return c.leaf.sizes[c.at] }

func (c cursor[T]) forward() cursor[T] {
	c.at++
	return c.normal()
}

func (c cursor[T]) normal() cursor[T] {
	if c.at == len(c.leaf.sizes) {
		return cursor[T]{leaf: c.leaf.next}
	}
	return c
}

func (c cursor[T]) back() cursor[T] {
	if c.at > 0 {
		return cursor[T]{leaf: c.leaf, at: c.at - 1}
	}
	if c.leaf.previous == nil {
		return cursor[T]{}
	}
	return cursor[T]{leaf: c.leaf.previous, at: len(c.leaf.previous.sizes) - 1}
}

// insert adds an item. None of that rank may be there already.
func (o *btree[T]) insert(r rank, item T) {
	if o.root == nil {
		o.root = &node[T]{}
	}
	if right := o.root.insert(&r, item); right != nil {
		left := o.root
		o.root = &node[T]{
			sizes:    []int64{left.sizes[0], right.sizes[0]},
			children: []*node[T]{left, right},
			count:    left.count + right.count,
		}
	}
}

// remove takes the item of that rank out, and reports whether there was one.
func (o *btree[T]) remove(r rank) bool {
	if o.root == nil || !o.root.remove(&r) {
		return false
	}
	for len(o.root.children) == 1 {
		o.root = o.root.children[0]
	}
	if o.root.count == 0 {
		o.root = nil
	}
	return true
}

// insert returns the node to stand to the right of this one, if it had to be split.
func (n *node[T]) insert(r *rank, item T) (right *node[T]) {
	if n.isLeaf() {
		at := n.before(r, 0)
		n, at, right = n.room(at)
		n.sizes = slices.Insert(n.sizes, at, r.size)
		n.items = slices.Insert(n.items, at, item)
		n.count++
		return right
	}
	at := n.child(r)
	beside := n.children[at].insert(r, item)
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

// room makes room for one entry, and says where it goes. A full node is split in the middle; but at its
// end if the entry goes there, so that what comes in order fills the nodes.
func (n *node[T]) room(at int) (*node[T], int, *node[T]) {
	if len(n.sizes) < maxNode {
		return n, at, nil
	}
	cut := len(n.sizes) / 2
	if at == len(n.sizes) {
		cut = at
	}
	right := n.split(cut)
	if at > cut || at == len(n.sizes) && cut == at {
		return right, at - cut, right
	}
	return n, at, right
}

func (n *node[T]) split(cut int) *node[T] {
	right := &node[T]{sizes: slices.Clone(n.sizes[cut:])}
	n.sizes = n.sizes[:cut]
	if n.isLeaf() {
		right.items = slices.Clone(n.items[cut:])
		clear(n.items[cut:])
		n.items = n.items[:cut]
		n.link(right)
	} else {
		right.children = append([]*node[T]{}, n.children[cut:]...)
		clear(n.children[cut:])
		n.children = n.children[:cut]
	}
	n.recount()
	right.recount()
	return right
}

func (n *node[T]) recount() {
	n.count = len(n.items)
	for _, child := range n.children {
		n.count += child.count
	}
}

// link puts a leaf behind this one.
func (n *node[T]) link(right *node[T]) {
	right.previous, right.next = n, n.next
	if n.next != nil {
		n.next.previous = right
	}
	n.next = right
}

// unlink takes a leaf out of the row.
func (n *node[T]) unlink() {
	if n.previous != nil {
		n.previous.next = n.next
	}
	if n.next != nil {
		n.next.previous = n.previous
	}
}

func (n *node[T]) remove(r *rank) bool {
	if !n.isLeaf() {
		at := n.child(r)
		if !n.children[at].remove(r) {
			return false
		}
		n.count--
		n.tidy(at)
		return true
	}
	at := n.before(r, 0)
	if at == len(n.sizes) || n.sizes[at] != r.size || n.items[at].tie(*r) != 0 {
		return false
	}
	n.sizes = slices.Delete(n.sizes, at, at+1)
	n.items = slices.Delete(n.items, at, at+1)
	n.count--
	return true
}

// tidy follows a removal below a child: an empty child goes, and one that has room for its neighbour
// joins it.
func (n *node[T]) tidy(at int) {
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

func (n *node[T]) drop(at int) {
	if n.children[at].isLeaf() {
		n.children[at].unlink()
	}
	n.sizes = slices.Delete(n.sizes, at, at+1)
	n.children = slices.Delete(n.children, at, at+1)
}

func (n *node[T]) join(right *node[T]) {
	n.sizes = append(n.sizes, right.sizes...)
	n.items = append(n.items, right.items...)
	n.children = append(n.children, right.children...)
	n.count += right.count
}

// sizeOf is a number that orders quantities: twice the quantity, or the odd number below it for one that
// is not whole. What is beyond 4 EiB, and what is negative, is all one size. So a greater quantity never
// has a smaller size, and equal sizes that are exact mean equal quantities.
func sizeOf(quantity resource.Quantity) int64 {
	whole, ok := quantity.AsInt64()
	if !ok {
		return sizeOfOdd(quantity)
	}
	switch {
	case whole < 0:
		return negative
	case whole > math.MaxInt64/2:
		return beyond
	}
	return 2 * whole
}

const (
	beyond   = math.MaxInt64
	negative = -1
)

// exact reports whether all quantities of a size are equal.
func exact(size int64) bool { return size&1 == 0 }

// sizeOfOdd is for fractions and for numbers that are not held in 64 bits.
func sizeOfOdd(quantity resource.Quantity) int64 {
	switch {
	case quantity.Sign() < 0:
		return negative
	case quantities.Compare(quantity, *resource.NewQuantity(math.MaxInt64/2, resource.BinarySI)) > 0:
		return beyond
	}
	up := quantity.Value()
	if quantity.CmpInt64(up) == 0 {
		return 2 * up
	}
	return 2*up - 1
}
