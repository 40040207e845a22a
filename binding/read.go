package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// IsAbsent reports whether the error of a live read is the API server's own word that the object does not exist: a
// NotFound that names kind and object. A proxy's 404 is none. client-go makes the same error of it, kind and name
// filled in, but for a cause. A list is never absent.
func IsAbsent(err error, key obj.Key) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Group != corev1.GroupName || details.Name != key.Name || key.IsList() {
		return false
	}
	kind := strings.TrimSuffix(strings.ToLower(details.Kind), "s") // the server names the resource, in the plural
	byProxy := slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
	return !byProxy && kind == strings.ToLower(string(key.Kind))
}

// contradiction is the reply to a live read that contradicts what is known: an object does not exist, or it exists
// though it was deleted, or it is older than it was. A server that was restored replies so, and so does a proxy or a
// cache that stands in for the server. It is believed once the next read has the same reply.
type contradiction struct {
	uid     types.UID // of the object that is missing, or that is there
	missing bool
}

// haveRead takes what the server said.
func (s *state) haveRead(t *task, got reply) error {
	key := t.pending.Key
	if got.object != nil {
		t.handOver(got.object)
	}
	found, contradicts := s.contradictionIn(got, t)
	switch {
	case contradicts && found != t.contradicted[key]:
		zeromap.Put(&t.contradicted, key, found)
		return nil // whatever asked for it asks again
	case contradicts && !found.missing:
		t.wake(s.adopt(key, got.object), t.key)
		t.wake(s.settle(key), t.key)
		return wentBackError(got.object)
	case contradicts:
		t.wake(s.drop(key, found.uid), t.key)
		zeromap.Put(&t.contradicted, key, contradiction{missing: true})
	case got.err != nil:
		return got.err
	case got.object != nil:
		delete(t.contradicted, key)
		t.wake(s.observe(got.object), t.key)
	}
	t.wake(s.settle(key), t.key)
	if s.renew(t) && key != t.key {
		return nil // it is read anew if it matters still
	}
	switch key.Kind {
	case obj.KindPods:
		zeromap.Put(&t.pods, key.Namespace, got.pods)
	case obj.KindAttachments:
		t.attachments = got.attachments
	}
	zeromap.Put(&t.live, key, struct{}{})
	return nil
}

// contradictionIn is what a reply says against what was known when its read was sent, if it does. What an informer has
// shown since counts no more than the reply: the next read tells which of the two is newer.
func (s *state) contradictionIn(got reply, t *task) (found contradiction, contradicts bool) {
	switch {
	case IsAbsent(got.err, t.pending.Key):
		return contradiction{uid: uidOf(t.asked), missing: true}, true
	case got.object == nil:
		return contradiction{}, false
	}
	found.uid = got.object.GetUID()
	return found, s.gone.has(found.uid) || t.asked != nil && obj.Older(got.object, t.asked)
}

// drop forgets the object of that UID, which does not exist. One that was observed since is another.
func (s *state) drop(key obj.Key, uid types.UID) []obj.Key {
	if known := s.known(key); known != nil && known.GetUID() == uid {
		return s.observeDeleted(known)
	}
	return nil
}

// adopt stores what the server has in place of what was known, newer though that was.
func (s *state) adopt(key obj.Key, object obj.Object) (woken []obj.Key) {
	if known := s.known(key); known != nil {
		woken = s.observeDeleted(known)
	}
	s.gone.exhume(object.GetUID())
	return append(woken, s.observe(object)...)
}

// wentBackError ends a sync that was told of a server that went back in time: nothing is destroyed on what such a reply
// says. The next sync begins with what the server has now.
func wentBackError(found obj.Object) error {
	return fmt.Errorf("metadata.resourceVersion: the server has %s, though a later one was known or the object was deleted: it may have been restored from a backup", found.GetResourceVersion())
}
