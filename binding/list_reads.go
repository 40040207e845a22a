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
	own, other := p.join(key)
	if own != nil {
		if other != nil {
			other.wait(ctx)
		}
		p.run(key, own, list)
		return own.got
	}
	if !other.wait(ctx) || other.got.Err != nil {
		return list()
	}
	return other.got
}

// join returns a list of one's own, to run when the other is done, if there is another; or else only the other, which
// another sync runs.
func (p *listReads) join(key obj.Key) (own, other *listRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := p.next[key]; next != nil {
		return nil, next
	}
	own = &listRead{done: make(chan struct{}), got: engine.Reply{Err: errPanicked}}
	if running := p.running[key]; running != nil {
		zeromap.Put(&p.next, key, own)
		return own, running
	}
	zeromap.Put(&p.running, key, own)
	return own, nil
}

func (p *listReads) run(key obj.Key, own *listRead, list func() engine.Reply) {
	p.begin(key, own)
	defer p.end(key, own)
	own.got = list()
}

// begin marks a list as running: no other sync can join it any more.
func (p *listReads) begin(key obj.Key, own *listRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next[key] == own {
		delete(p.next, key)
	}
	zeromap.Put(&p.running, key, own)
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
