package binding

import "k8s.io/apimachinery/pkg/api/resource"

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

// ordered is a set of items in the order of their ranks, a B+ tree: sizes lie side by side, so that a
// search looks at few cache lines and at no object before it has found its place. The zero value is
// empty. It does not guard itself against concurrent use.
type ordered[T ranked] struct{ root *node[T] }

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

func (o *ordered[T]) len() int {
	if o == nil || o.root == nil {
		return 0
	}
	return o.root.count
}

// below is the number of items that come before the rank.
func (o *ordered[T]) below(r *rank) int {
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
func (o *ordered[T]) seek(r *rank) cursor[T] {
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
func (o *ordered[T]) start(c cursor[T]) cursor[T] {
	return o.seek(&rank{size: c.size(), quantity: c.item().amount()})
}

// last is at the last item that comes before the rank.
func (o *ordered[T]) last(r *rank) cursor[T] {
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
