package apitest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// watching is the reactor that begins the watches of a fake clientset.
type watching struct{ *backing }

// React begins a watch.
func (b watching) React(action clienttesting.Action) (handled bool, begun watch.Interface, err error) {
	watched, ok := action.(clienttesting.WatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	resource := watched.GetResource()
	request := Request{Verb: "watch", Group: resource.Group, Resource: resource.Resource, Namespace: watched.GetNamespace()}
	if b.server.forbids(request) {
		return true, nil, forbidden(request)
	}
	w := &fakeWatch{backing: b.backing, events: make(chan watch.Event, watch.DefaultChanSize), stopped: make(chan struct{})}
	w.stream, err = b.server.newStream(request, watched.ListOptions, w.offer)
	if err != nil {
		return true, nil, err
	}
	w.begin()
	return true, w, nil
}

// deliver has all watches send what is new.
func (b *backing) deliver() {
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.watches))
	b.mu.Unlock()
	for _, w := range open {
		w.more()
	}
}

// fakeWatch is one watch of a fake clientset. It waits for a reader that is slow, as a connection does.
type fakeWatch struct {
	backing *backing
	stream  *stream
	events  chan watch.Event
	stopped chan struct{}

	mu    sync.Mutex // for what is below, and for the stream
	ended bool
}

// ResultChan returns the events.
func (w *fakeWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *fakeWatch) Stop() {
	w.backing.mu.Lock()
	delete(w.backing.watches, w)
	w.backing.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.stopped)
		close(w.events)
	}
}

// begin sends what there is, and what comes until the watch ends.
func (w *fakeWatch) begin() {
	w.backing.mu.Lock()
	w.backing.watches[w] = true
	w.backing.mu.Unlock()
	ended := w.backing.server.connected()
	w.more()
	go func() {
		defer w.Stop()
		for {
			changed := w.backing.server.Server.Changed()
			var later <-chan time.Time
			switch w.more() {
			case missed:
				return
			case notTaken:
				later = time.After(readAgain)
			}
			select {
			case <-w.stopped:
				return
			case <-ended:
				return
			case <-changed:
			case <-later:
			}
		}
	}()
}

// readAgain is how soon it is looked whether a reader that was too slow has read on.
const readAgain = time.Millisecond

// more sends what is new.
func (w *fakeWatch) more() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return upToDate
	}
	return w.stream.more()
}

// offer puts an event into the channel if that has room.
func (w *fakeWatch) offer(event watch.Event) bool {
	select {
	case w.events <- watch.Event{Type: event.Type, Object: untyped(event.Object)}:
		return true
	default:
		return false
	}
}
