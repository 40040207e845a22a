package binding

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// State lets tests step a controller's state: no goroutine, no I/O but what a test performs itself.
type State struct{ state }

// Step is what a step asks for.
type Step struct{ call }

func NewState(rules Rules) *State { return &State{newState(rules)} }

func (s *State) Clone() *State                         { return &State{*s.clone()} }
func (s *State) Observe(object obj.Object) []obj.Key   { return s.observe(object) }
func (s *State) Forget(object obj.Object) []obj.Key    { return s.observeDeleted(object) }
func (s *State) Recheck(object obj.Object) []obj.Key   { return s.recheck(object) }
func (s *State) Start(key obj.Key) Step                { return Step{s.start(key)} }
func (s *State) Proceed(key obj.Key, got any) Step     { return Step{s.proceed(key, got.(reply))} }
func (s Step) Done() bool                              { return s.done }
func (s Step) Action() Action                          { return s.action }
func (s Step) Next() []obj.Key                         { return s.result.Next }
func (s Step) Err() error                              { return s.err }
func Perform(client Client, action Action) any         { return perform(context.Background(), client, action) }
func (s *State) Holder(object obj.Key) (obj.Key, bool) { by, ok := s.holders[object]; return by, ok }
func (s *State) Unsettled(object obj.Key) (by obj.Key) { return s.unsettled[object] }
func (s *State) Claims() []*corev1.PersistentVolumeClaim {
	return slices.Collect(maps.Values(s.claims))
}
func (s *State) Turns(volume string) int { return len(s.offers.made[volume].claims) }
func (s Step) Published() []Event        { return s.publish }
func (s Step) After() time.Duration      { return s.result.After }

// Replied is the object in a reply; nil if there is none.
func Replied(got any) obj.Object { return got.(reply).object }

// Failed is the error in a reply; nil if there is none.
func Failed(got any) error { return got.(reply).err }

// Reply is what comes of an action: an object, or an error.
func Reply(object obj.Object, err error) any { return reply{object: object, err: err} }

// Reserved is who has a volume by Index.Reserve.
func (s *State) Reserved() map[string]obj.Key {
	found := map[string]obj.Key{}
	for name := range s.volumes {
		if claim, reserved := s.index.Reservation(name); reserved {
			found[name] = claim
		}
	}
	return found
}
