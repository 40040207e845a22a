package clientgo

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// Lists notices a live list from the past, as of a cache that answers in the server's place: one that is older than what was read of
// its kind before it was requested. The zero value has seen nothing; a nil *Lists notices nothing. It is safe for concurrent use.
type Lists struct {
	mu     sync.Mutex
	newest map[obj.Kind]string // how far the server was, by the kind of list
}

// Read calls read, which requests the list of a key, and returns its error. A list that is not whole is one, see obj.CheckList, and
// so is one from the past. As the server may have been restored from a backup, the next such list of that kind is taken.
func (l *Lists) Read(key obj.Key, read func() (metav1.ListInterface, error)) error {
	was := l.newestOf(key.Kind)
	list, err := read()
	if err != nil {
		return err
	}
	if err := obj.CheckList(key, list); err != nil {
		return err
	}
	if version := list.GetResourceVersion(); !l.takes(key.Kind, was, version) {
		return fmt.Errorf("the list of %s has resourceVersion %s, and %s was read before: a cache may have answered in the server's place, or the server was restored from a backup; the next list is taken as it is", key, version, was)
	}
	return nil
}

// Reached notes how far the server was, for the lists of a kind, by the resourceVersion of an object that it has shown.
func (l *Lists) Reached(kind obj.Kind, version string) { l.takes(kind, "", version) }

func (l *Lists) newestOf(kind obj.Kind) string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[kind]
}

// takes notes a version, and reports whether it is no older than what was seen before it was requested. If it is, the server may have
// gone back, and is where this version says. Lists are requested side by side: what was seen since does not count, and others that were
// on their way when the server went back are older as well.
func (l *Lists) takes(kind obj.Kind, was, version string) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	newest, back := l.newest[kind], was != "" && older(version, was)
	if newest == "" || older(newest, version) || back && !older(newest, was) {
		if l.newest == nil {
			l.newest = map[obj.Kind]string{}
		}
		l.newest[kind] = version
	}
	return !back
}
