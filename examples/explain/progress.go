package main

import (
	"fmt"
	"io"
	"time"
)

const (
	patience = 2 * time.Second        // nothing is said before
	pause    = 200 * time.Millisecond // between two lines
)

// progress prints how far the program is, in one line that is overwritten.
type progress struct {
	to           io.Writer // nil: nobody watches
	now          func() time.Time
	start, spoke time.Time
}

func newProgress(to io.Writer, now func() time.Time) *progress {
	return &progress{to: to, now: now, start: now()}
}

func (p *progress) reading(done, of int) { p.tell("read", done, of) }

func (p *progress) tell(what string, done, of int) {
	if p.to == nil {
		return
	}
	now := p.now()
	if now.Sub(p.start) < patience || now.Sub(p.spoke) < pause {
		return
	}
	p.spoke = now
	fmt.Fprintf(p.to, "\r\x1b[K%s %d of %d", what, done, of)
}

// end wipes the line.
func (p *progress) end() {
	if p.to != nil && !p.spoke.IsZero() {
		io.WriteString(p.to, "\r\x1b[K")
	}
}
