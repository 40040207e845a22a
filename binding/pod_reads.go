package binding

import (
	"context"
	"sync"
)

// podReads are the lists of pods that are being read, one of a namespace at a time. Where a thousand claims of a namespace
// are deleted at once, each has to know of all its pods; those whose syncs ask while a list is on its way share the next.
// It begins after they have asked, so that it proves to each of them what a list of its own would.
type podReads struct {
	mu            sync.Mutex
	running, next map[string]*podRead // by namespace
}

// podRead is one list. got is good once done is closed.
type podRead struct {
	done chan struct{}
	got  reply
}

// read is what list says, or what the next list that another sync asked for said. If that one failed, which may be because
// its own sync was to end, this one asks for itself.
func (p *podReads) read(ctx context.Context, namespace string, list func() reply) reply {
	own, other := p.join(namespace)
	if own != nil {
		if other != nil {
			other.wait(ctx)
		}
		p.run(namespace, own, list)
		return own.got
	}
	if !other.wait(ctx) || other.got.err != nil {
		return list()
	}
	return other.got
}

// join returns a read of one's own, to run when the other is done, if there is another; or else only the other, which
// somebody will run.
func (p *podReads) join(namespace string) (own, other *podRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := p.next[namespace]; next != nil {
		return nil, next
	}
	own = &podRead{done: make(chan struct{}), got: reply{err: errPanicked}}
	if running := p.running[namespace]; running != nil {
		put(&p.next, namespace, own)
		return own, running
	}
	put(&p.running, namespace, own)
	return own, nil
}

func (p *podReads) run(namespace string, own *podRead, list func() reply) {
	p.begin(namespace, own)
	defer p.end(namespace, own)
	own.got = list()
}

// begin lets nobody join any more.
func (p *podReads) begin(namespace string, own *podRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next[namespace] == own {
		delete(p.next, namespace)
	}
	put(&p.running, namespace, own)
}

func (p *podReads) end(namespace string, own *podRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[namespace] == own {
		delete(p.running, namespace)
	}
	close(own.done)
}

// wait reports whether the read is done; it is not if the context ended first.
func (r *podRead) wait(ctx context.Context) bool {
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}
