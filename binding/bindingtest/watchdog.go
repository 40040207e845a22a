package bindingtest

import (
	"fmt"
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
)

// UnsettledError says that a controller did not come to an end, and what it kept doing.
type UnsettledError struct {
	// Key is the object that was written, or the key that was synced, most often.
	Key obj.Key
	// Count is how often.
	Count int
	// Last are the last writes of that object, in order, each with its actor; empty if nothing wrote it.
	Last []string
}

func (e *UnsettledError) Error() string {
	if len(e.Last) == 0 {
		return fmt.Sprintf("does not settle: %s was synced %d times and nothing writes it", display(e.Key), e.Count)
	}
	return fmt.Sprintf("does not settle: %s was written %d times, last:\n\t%s", display(e.Key), e.Count, strings.Join(e.Last, "\n\t"))
}

const (
	maxWrites = 30 // of one object within one Settle; binding and unbinding it takes four
	shownLast = 6
)

// watchdog counts what happens within one Settle.
type watchdog struct {
	server *Server
	seen   int // calls looked at
	first  int // calls made before
	writes map[obj.Key]int
	syncs  map[obj.Key]int
}

func newWatchdog(server *Server) *watchdog {
	start := len(server.callsFrom(0))
	return &watchdog{server: server, seen: start, first: start, writes: map[obj.Key]int{}, syncs: map[obj.Key]int{}}
}

// check fails once an object was written, or the key was synced, more often than any end can take.
func (w *watchdog) check(key obj.Key) error {
	calls := w.server.callsFrom(w.seen)
	w.seen += len(calls)
	for _, call := range calls {
		if !call.Writes() || !call.Changed() {
			continue
		}
		if w.writes[call.Key]++; w.writes[call.Key] > maxWrites {
			return &UnsettledError{Key: call.Key, Count: w.writes[call.Key], Last: w.last(call.Key)}
		}
	}
	if w.syncs[key]++; w.syncs[key] > w.maxSyncs() {
		return &UnsettledError{Key: key, Count: w.syncs[key], Last: w.last(key)}
	}
	return nil
}

// maxSyncs allows that a claim is tried again for each volume, and a volume for each claim.
func (w *watchdog) maxSyncs() int { return 200 + 10*w.server.count() }

func (w *watchdog) last(key obj.Key) []string {
	var lines []string
	for _, call := range w.server.CallsSince(w.first) {
		if call.Key == key && call.Writes() && call.Changed() {
			lines = append(lines, strings.TrimPrefix(call.Actor+": "+call.String(), ": "))
		}
	}
	return lines[max(0, len(lines)-shownLast):]
}
