package clientgo

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// Lists notices a live list from the past, as of a cache that answers in the server's place: one that is older than what was read of
// its kind, or known of any claim or volume, before it was requested. The zero value has seen nothing; a nil *Lists notices nothing. It
// is safe for concurrent use.
type Lists struct {
	mu   sync.Mutex
	seen map[obj.Kind]seen // by the kind of list
}

// seen is how far the server was, before a list is requested.
type seen struct {
	listed string // by lists of the kind
	known  string // by claims and volumes
	// apart is that the last list was before what was known. It will be so each time where the kind has an etcd of its own
	// (--etcd-servers-overrides).
	apart bool
	// disputed is what the last list was before; "" if it was before nothing. One that is not, right after that, may be the one from the past.
	disputed string
}

// Read calls read, which requests the list of a key, and returns its error. A list that is not whole is one, see obj.CheckList, and
// so is one from the past, and the first after that which is not from the past: either may be an old reply. As the server may have been restored from a backup, or have the
// kind in an etcd of its own, the next such list of that kind is taken. What is known of claims and volumes counts again once a list of the kind is not before it.
func (l *Lists) Read(key obj.Key, read func() (metav1.ListInterface, error)) error {
	was := l.seenOf(key.Kind)
	list, err := read()
	if err != nil {
		return err
	}
	if err := obj.CheckList(key, list); err != nil {
		return err
	}
	version := list.GetResourceVersion()
	later := was.after(version)
	l.note(key.Kind, was, version, later)
	switch {
	case later != "":
		return fmt.Errorf("the list of %s has resourceVersion %s, and %s was seen before: a cache may have answered in the server's place, or the server was restored from a backup; the next list is taken as it is", key, version, later)
	case was.disputed != "" && !older(version, was.disputed):
		return fmt.Errorf("the list of %s has resourceVersion %s, and the one before it had an earlier one than was seen: one of the two is from the past; the next list is taken as it is", key, version)
	}
	return nil
}

// Reached notes how far the server was, by the resourceVersion of a claim or a volume. Those of pods and attachments are as a rule of
// the same etcd.
func (l *Lists) Reached(version string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kind := range []obj.Kind{obj.KindClaims, obj.KindPods, obj.KindAttachments} {
		now := l.seen[kind]
		now.known = advance(now.known, "", version)
		l.put(kind, now)
	}
}

func (l *Lists) seenOf(kind obj.Kind) seen {
	if l == nil {
		return seen{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[kind]
}

// after returns what was seen, where that shows a list of this version, which was requested then, to be from the past; else "".
func (s seen) after(version string) string {
	switch {
	case older(version, s.listed):
		return s.listed
	case older(version, s.known) && !s.apart:
		return s.known
	}
	return ""
}

// note notes the version of a list, what was seen before it was requested, and what of that is later. If it is before another list of the kind, the server may
// have gone back, and is where this version says.
func (l *Lists) note(kind obj.Kind, was seen, version, later string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.seen[kind]
	now.listed = advance(now.listed, was.listed, version)
	if older(version, was.listed) {
		now.known = advance(now.known, was.known, version)
	}
	now.apart, now.disputed = older(version, was.known), later
	l.put(kind, now)
}

func (l *Lists) put(kind obj.Kind, now seen) {
	if l.seen == nil {
		l.seen = map[obj.Kind]seen{}
	}
	l.seen[kind] = now
}

// advance returns the newest version that counts: the newest until now, or one that was shown, before whose request another was the
// newest. Lists are requested side by side. What was seen since does not count; and if the server went back, others that were on their
// way are older as well, and the newest of these counts.
func advance(newest, was, version string) string {
	if newest == "" || older(newest, version) || older(version, was) && !older(newest, was) {
		return version
	}
	return newest
}
