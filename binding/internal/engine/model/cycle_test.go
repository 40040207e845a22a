package model_test

import (
	"maps"
	"slices"
)

// settling returns how many writes the controllers make at most, from any state, until there is nothing left to do. If they
// may never come to that, it is the states that can follow each other without end.
//
// Where their moves make no cycle, that is for every order of the moves. Two controllers can make one, each undoing
// what the other does, as long as one of them is never told of a change: that is no fault of theirs if they come to an
// end once it is told. So a cycle counts only if everybody who may take a move at each state of it does take one. The
// writes are then those that are made if caches catch up first.
func settling(states int, moves []edge) (writes int, ring map[uint32]bool) {
	writes, endless := worstCase(states, moves)
	if endless == nil {
		return writes, nil
	}
	if ring := fairCycle(states, moves, endless); len(ring) > 0 {
		return 0, ring
	}
	return cachesFirst(states, moves)
}

// worstCase returns how many writes the controllers make at most from any state until there is nothing left to do, in
// whatever order they take their steps; and the states from which they may never come to an end.
func worstCase(states int, moves []edge) (writes int, endless []bool) {
	outgoing := make([]uint32, states)
	into := make([][2]uint32, states+1) // where the moves into a state begin and end in order
	for _, mv := range moves {
		outgoing[mv.from]++
		into[mv.to][1]++
	}
	start := uint32(0)
	for i := range into {
		count := into[i][1]
		into[i] = [2]uint32{start, start}
		start += count
	}
	order := make([]uint32, len(moves))
	for i, mv := range moves {
		order[into[mv.to][1]] = uint32(i)
		into[mv.to][1]++
	}
	return longestPaths(states, moves, outgoing, into, order)
}

// longestPaths goes from the ends backwards: a state is done when all that can follow it are.
func longestPaths(states int, moves []edge, outgoing []uint32, into [][2]uint32, order []uint32) (writes int, endless []bool) {
	cost := make([]uint16, states)
	var done []uint32
	for at, left := range outgoing {
		if left == 0 {
			done = append(done, uint32(at))
		}
	}
	for i := 0; i < len(done); i++ {
		at := done[i]
		writes = max(writes, int(cost[at]))
		for _, which := range order[into[at][0]:into[at][1]] {
			mv := moves[which]
			cost[mv.from] = max(cost[mv.from], cost[at]+uint16(btoi(mv.writes)))
			if outgoing[mv.from]--; outgoing[mv.from] == 0 {
				done = append(done, mv.from)
			}
		}
	}
	if len(done) == states {
		return writes, nil
	}
	endless = make([]bool, states)
	for at, left := range outgoing {
		endless[at] = left > 0
	}
	return writes, endless
}

// cachesFirst follows one order of moves alone: caches first, then syncs in the order of their names.
func cachesFirst(states int, moves []edge) (writes int, ring map[uint32]bool) {
	first := make([]int32, states)
	for i := range first {
		first[i] = -1
	}
	for i, mv := range moves {
		if at := first[mv.from]; at < 0 || mv.agent < moves[at].agent {
			first[mv.from] = int32(i)
		}
	}
	chosen := make([]edge, 0, states)
	for _, i := range first {
		if i >= 0 {
			chosen = append(chosen, moves[i])
		}
	}
	writes, endless := worstCase(states, chosen)
	for at, left := range endless {
		if left {
			return writes, map[uint32]bool{uint32(at): true}
		}
	}
	return writes, nil
}

// fairCycle returns the states of a cycle that starves nobody; none if there is no such cycle. Moments that can all come
// from each other make one if whoever may move at each of them has a move among them.
func fairCycle(states int, moves []edge, among []bool) map[uint32]bool {
	may := make([]uint32, states)
	outgoing := map[uint32][]edge{}
	for _, mv := range moves {
		may[mv.from] |= 1 << mv.agent
		if among[mv.from] && among[mv.to] {
			outgoing[mv.from] = append(outgoing[mv.from], mv)
		}
	}
	for _, together := range components(outgoing) {
		ring := map[uint32]bool{}
		for _, at := range together {
			ring[at] = true
		}
		always, moved := ^uint32(0), uint32(0)
		for at := range ring {
			always &= may[at]
			for _, mv := range outgoing[at] {
				if ring[mv.to] {
					moved |= 1 << mv.agent
				}
			}
		}
		if moved != 0 && always&^moved == 0 {
			return ring
		}
	}
	return nil
}

// components returns the largest sets of states that can all come from each other (Tarjan).
func components(outgoing map[uint32][]edge) (found [][]uint32) {
	type frame struct {
		at   uint32
		next int
	}
	order, low, waiting := map[uint32]int{}, map[uint32]int{}, map[uint32]bool{}
	var stack []uint32
	for _, root := range slices.Sorted(maps.Keys(outgoing)) {
		if order[root] > 0 {
			continue
		}
		visit := func(at uint32) frame {
			order[at] = len(order) + 1
			low[at] = order[at]
			stack, waiting[at] = append(stack, at), true
			return frame{at: at}
		}
		for calls := []frame{visit(root)}; len(calls) > 0; {
			top := &calls[len(calls)-1]
			if top.next < len(outgoing[top.at]) {
				to := outgoing[top.at][top.next].to
				top.next++
				if order[to] == 0 {
					calls = append(calls, visit(to))
				} else if waiting[to] {
					low[top.at] = min(low[top.at], order[to])
				}
				continue
			}
			at := top.at
			if calls = calls[:len(calls)-1]; len(calls) > 0 {
				under := calls[len(calls)-1].at
				low[under] = min(low[under], low[at])
			}
			if low[at] == order[at] {
				cut := len(stack) - 1
				for stack[cut] != at {
					cut--
				}
				found = append(found, slices.Clone(stack[cut:]))
				for _, member := range stack[cut:] {
					delete(waiting, member)
				}
				stack = stack[:cut]
			}
		}
	}
	return found
}

// cyclePath returns a way back to a state, of those that can follow each other without end: where it begins, and its moves.
func (m *model) cyclePath(nodes []visited, known map[fingerprint]uint32, ring map[uint32]bool) (begins uint32, round []move) {
	begins = slices.Min(slices.Collect(maps.Keys(ring)))
	now := m.beginning()
	for _, mv := range pathTo(nodes, begins) {
		now = m.apply(now, mv)
	}
	seen := map[uint32]int{begins: 0}
	for at := begins; ; {
		for _, mv := range slices.Clone(m.moves(now)) {
			if !mv.byController() {
				continue
			}
			then := m.apply(now, mv)
			if next, ok := known[m.print(then)]; ok && ring[next] {
				at, now, round = next, then, append(round, mv)
				break
			}
		}
		if first, again := seen[at]; again {
			return at, round[first:]
		}
		seen[at] = len(round)
	}
}
