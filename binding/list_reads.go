package binding

import (
	"context"
	"sync"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// listReads are the lists that are being read, of pods or of attachments, one of a key at a time. Where a thousand claims of
// a namespace are deleted at once, each has to know of all its pods, and each volume of all attachments; those whose syncs
// ask while a list is on its way share the next. It begins after they have asked, so that it proves to each of them what a
// list of its own would.
type listReads struct {
	mu            sync.Mutex
	running, next map[obj.Key]*listRead
}

// listRead is one list. got is good once done is closed.
type listRead struct {
	done chan struct{}
	got  reply
}

// read is what list says, or what the next list that another sync asked for said. If that one failed, which may be because
// its own sync was to end, this one asks for itself.
func (p *listReads) read(ctx context.Context, key obj.Key, list func() reply) reply {
	own, other := p.join(key)
	if own != nil {
		if other != nil {
			other.wait(ctx)
		}
		p.run(key, own, list)
		return own.got
	}
	if !other.wait(ctx) || other.got.err != nil {
		return list()
	}
	return other.got
}

// join returns a read of one's own, to run when the other is done, if there is another; or else only the other, which
// somebody will run.
func (p *listReads) join(key obj.Key) (own, other *listRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := p.next[key]; next != nil {
		return nil, next
	}
	own = &listRead{done: make(chan struct{}), got: reply{err: errPanicked}}
	if running := p.running[key]; running != nil {
		zeromap.Put(&p.next, key, own)
		return own, running
	}
	zeromap.Put(&p.running, key, own)
	return own, nil
}

func (p *listReads) run(key obj.Key, own *listRead, list func() reply) {
	p.begin(key, own)
	defer p.end(key, own)
	own.got = list()
}

// begin lets nobody join any more.
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
