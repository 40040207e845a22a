package binding_test

// searchOrder is in which order moments are looked at. They are the same ones, whatever the order.
type searchOrder string

const (
	depthFirst   searchOrder = "DepthFirst"
	breadthFirst searchOrder = "BreadthFirst"
)

// agenda is what is still to be looked at.
type agenda struct {
	order     searchOrder
	now, then []open // of this depth, and of the next; depth first all of it is in then
	turned    func() // to the next depth
}

// open is a moment that has been met and not looked at, with its number.
type open struct {
	*moment
	at uint32
}

func (a *agenda) put(o open) { a.then = append(a.then, o) }

// take is what to look at next; false if nothing is left.
func (a *agenda) take() (next open, ok bool) {
	if a.order == depthFirst {
		last := len(a.then) - 1
		if last < 0 {
			return open{}, false
		}
		next, a.then[last] = a.then[last], open{}
		a.then = a.then[:last]
		return next, true
	}
	if len(a.now) == 0 {
		a.now, a.then = a.then, nil
		a.turned()
	}
	if len(a.now) == 0 {
		return open{}, false
	}
	next, a.now[0] = a.now[0], open{}
	a.now = a.now[1:]
	return next, true
}
