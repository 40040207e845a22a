package bindingtest

import (
	"errors"
	"slices"
	"sync"

	"github.com/pvbind/pvbind/binding"
)

var (
	_ binding.Client   = (*Client)(nil)
	_ binding.Recorder = (*Client)(nil)

	_ binding.AttachmentLister = (*Client)(nil)
)

var (
	// ErrCrashed is what a crashed Client answers to everything.
	ErrCrashed = errors.New("bindingtest: the client has crashed")
	// ErrAnswerLost says that a connection broke before the answer came. The call took effect.
	ErrAnswerLost = errors.New("bindingtest: connection lost while waiting for the answer")
)

// Hook stands between a Client and its Server. It may look at the call, do things before and after it,
// not make it at all, or answer with another error than the server did. To make the call it calls do,
// once; call.Before and call.After are set then.
//
// No lock is held while a hook runs, so it may call the server itself.
type Hook func(call *Call, do func() error) error

// Client is one user of a Server, with a name in the log and with faults of its own. It has all the
// calls that the Server has. It may be used from many goroutines at once.
type Client struct {
	verbs
	server *Server
	name   string

	mu      sync.Mutex
	hooks   []Hook
	crash   crash
	writing int // writes until the crash, if one is planned
}

// crash is where a Client stands on its way to a crash.
type crash string

const (
	noCrash crash = ""
	planned crash = "Planned"
	crashed crash = "Crashed"
)

// NewClient returns another client of the server. Calls made through it carry its name in the log.
func (s *Server) NewClient(name string) *Client {
	c := &Client{server: s, name: name}
	c.verbs.perform = c.perform
	return c
}

// Use adds hooks around every call from now on. The first one added is the outermost.
func (c *Client) Use(hooks ...Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = append(slices.Clip(c.hooks), hooks...)
}

// CrashAfter makes the client crash when n more writes have been made: the last one takes effect, but
// nobody hears of it any more, and every later call fails with ErrCrashed. With n = 0 it has crashed.
func (c *Client) CrashAfter(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crash, c.writing = planned, n
	if n <= 0 {
		c.crash = crashed
	}
}

// Crashed reports whether the client has crashed.
func (c *Client) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crash == crashed
}

// Restart ends a crash, or cancels one that is planned. Hooks stay.
func (c *Client) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crash = noCrash
}

func (c *Client) perform(call *Call) error {
	if c.Crashed() {
		return ErrCrashed
	}
	call.Actor = c.name
	err := c.chain(call)()
	if err == nil && call.Writes() && c.countDown() {
		err = ErrCrashed
	}
	c.server.settle(call, err)
	return err
}

// chain is the call with every hook around it.
func (c *Client) chain(call *Call) func() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	do := func() error { return c.server.perform(call) }
	for _, hook := range slices.Backward(c.hooks) {
		inner := do
		do = func() error { return hook(call, inner) }
	}
	return do
}

// countDown counts a write and reports whether it was the last one before the crash.
func (c *Client) countDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crash != planned {
		return false
	}
	c.writing--
	if c.writing > 0 {
		return false
	}
	c.crash = crashed
	return true
}
