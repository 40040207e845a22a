package binding

import (
	"context"
	"sync"

	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// listReads shares the lists of pods or of attachments among syncs. Where a thousand claims of a namespace are deleted at
// once, each of their syncs reads all its pods, and that of each volume all attachments. One list of a key is read at a time;
// syncs that come while it is on its way share the next. That begins after they have come, so that it proves to each of them
// what a list of its own would.
type listReads struct {
	mu            sync.Mutex
	running, next map[obj.Key]*listRead
}

// listRead is one list. got is valid once done is closed.
type listRead struct {
	done chan struct{}
	got  engine.Reply
}

// read returns the reply of list, or of the next list that another sync reads. If that one failed, perhaps because its own
// sync was cancelled, this one reads a list of its own.
func (p *listReads) read(ctx context.Context, key obj.Key, list func() engine.Reply) engine.Reply {
	next, running, own := p.join(key)
	if !own {
		if next.wait(ctx) && next.got.Err == nil {
			return next.got
		}
		return list()
	}
	if running != nil {
		running.wait(ctx)
	}
	p.begin(key, next)
	defer p.end(key, next)
	next.got = list()
	return next.got
}

// join returns the next list, whether it is for this sync to read, and after which other if one is running.
func (p *listReads) join(key obj.Key) (next, running *listRead, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := p.next[key]; next != nil {
		return next, nil, false
	}
	next = &listRead{done: make(chan struct{}), got: engine.Reply{Err: errPanicked}}
	zeromap.Put(&p.next, key, next)
	return next, p.running[key], true
}

// begin marks the next list as running: no other sync can join it any more.
func (p *listReads) begin(key obj.Key, next *listRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, key)
	zeromap.Put(&p.running, key, next)
}

func (p *listReads) end(key obj.Key, own *listRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[key] == own {
		delete(p.running, key)
	}
	close(own.done)
}

// wait reports whether the read is done; it is not if the context ended first.
func (r *listRead) wait(ctx context.Context) bool {
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}
