package binding

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// perform sends an action to the API server through the client and returns the reply. An action that runs a hook is an error. So is
// a panic of the client, after which the outcome is unknown (B6).
func perform(ctx context.Context, client Client, action decision.Action) (got engine.Reply) {
	defer func() {
		if panicked := recover(); panicked != nil {
			got = engine.Reply{Err: fmt.Errorf("the Client %w: %v", errPanicked, panicked)}
		}
	}()
	if err := action.CheckVersion(); err != nil {
		return engine.Reply{Err: err}
	}
	got = send(ctx, client, action).Checked(action)
	follow(client, got.Object)
	return got
}

// follow tells the client of a claim or a volume, before that is known to any sync: no list that is requested after that may be older
// (V3). Objects of other kinds, or none, tell nothing.
func follow(client Client, object obj.Object) {
	follower, follows := client.(Follower)
	if !follows {
		return
	}
	switch object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		follower.Reached(object.GetResourceVersion())
	}
}

// send makes the call that an action says.
func send(ctx context.Context, client Client, action decision.Action) engine.Reply {
	switch action.Kind {
	case decision.Read:
		return performRead(ctx, client, action.Key)
	case decision.CreateVolume:
		return replyOf(client.CreateVolume(ctx, action.Volume))
	case decision.UpdateVolume:
		return replyOf(client.UpdateVolume(ctx, action.Volume))
	case decision.UpdateVolumeStatus:
		return replyOf(client.UpdateVolumeStatus(ctx, action.Volume))
	case decision.UpdateClaim:
		return replyOf(client.UpdateClaim(ctx, action.Claim))
	case decision.UpdateClaimStatus:
		return replyOf(client.UpdateClaimStatus(ctx, action.Claim))
	case decision.DeleteVolume:
		volume := action.Volume
		return engine.Reply{Err: client.DeleteVolume(ctx, volume.Name, metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion})}
	}
	return engine.Reply{Err: fmt.Errorf("%s: no client can perform that", action)}
}

func performRead(ctx context.Context, client Client, key obj.Key) engine.Reply {
	switch key.Kind {
	case obj.KindVolume:
		return replyOf(client.GetVolume(ctx, key.Name))
	case obj.KindClaim:
		return replyOf(client.GetClaim(ctx, key.Namespace, key.Name))
	case obj.KindClaims:
		claims, err := client.ListClaims(ctx)
		return engine.Reply{Claims: claims, Err: err}
	case obj.KindAttachments:
		return attachmentsReply(ctx, client)
	default:
		pods, err := client.ListPods(ctx, key.Namespace)
		return engine.Reply{Pods: pods, Err: err}
	}
}

// attachmentsReply lists the attachments; none if the client is no AttachmentLister.
func attachmentsReply(ctx context.Context, client Client) engine.Reply {
	lister, attaches := client.(AttachmentLister)
	if !attaches {
		return engine.Reply{}
	}
	attachments, err := lister.ListAttachments(ctx)
	return engine.Reply{Attachments: attachments, Err: err}
}

// errNoObject stands for a reply without content: it proves no absence, and no write.
var errNoObject = errors.New("the client returned neither an object nor an error")

func replyOf[O interface {
	comparable
	obj.Object
}](object O, err error) engine.Reply {
	var none O
	switch {
	case err != nil:
		return engine.Reply{Err: err}
	case object == none:
		return engine.Reply{Err: errNoObject}
	}
	return engine.Reply{Object: object}
}

// listReads coalesces concurrent lists of the same pods, of the claims, or of the attachments. Where a thousand claims of a namespace are
// deleted at once, each of their syncs lists all its pods. At most one list of a key is in flight. Syncs that come meanwhile
// share the one after it, which starts later than each of them has come, and so is as live as a list of its own.
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

// join returns the list to share, and whether this sync must read it. running is the list in flight that it must wait for, or
// nil.
func (p *listReads) join(key obj.Key) (next, running *listRead, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := p.next[key]; next != nil {
		return next, nil, false
	}
	next = &listRead{done: make(chan struct{}), got: engine.Reply{Err: errEnded}}
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
