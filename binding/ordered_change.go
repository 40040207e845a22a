package binding

import "slices"

// insert adds an item. None of that rank may be there already.
func (o *ordered[T]) insert(r rank, item T) {
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
func (o *ordered[T]) remove(r rank) bool {
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
