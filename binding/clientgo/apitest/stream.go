package apitest

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/obj"
)

// stream is one watch.
type stream struct {
	server   *Server
	kind     obj.Kind
	selected selection
	first    []watch.Event // what is to be sent before all changes
	version  uint64        // of the last change that was sent
	// send sends an event, whose object is not to be modified; false if the receiver does not take it.
	send func(watch.Event) bool
}

// newStream begins a watch as the API does: from the version given, or without one with all objects that there are. Informers
// may request these as well, and a bookmark after the last one.
func (s *Server) newStream(request Request, options metav1.ListOptions, send func(watch.Event) bool) (*stream, error) {
	selected, err := selectionOf(request, options)
	if err != nil {
		return nil, err
	}
	stream := &stream{server: s, kind: request.kind(), selected: selected, send: send}
	stream.version, _ = strconv.ParseUint(options.ResourceVersion, 10, 64)
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	switch {
	case initial:
		stream.begin()
		stream.first = append(stream.first, watch.Event{Type: watch.Bookmark, Object: bookmark(stream.kind, stream.version)})
	case stream.version == 0:
		stream.begin()
	case stream.expired():
		return nil, apierrors.NewResourceExpired("too old resource version: " + options.ResourceVersion)
	}
	return stream, nil
}

// begin has all objects sent first.
func (s *stream) begin() {
	s.server.read(s.kind, func(j *journal) {
		for _, object := range j.objects(s.selected) {
			s.first = append(s.first, watch.Event{Type: watch.Added, Object: object})
		}
		s.version = j.version
	})
}

func bookmark(kind obj.Kind, version uint64) obj.Object {
	object := typed(empty(kind))
	object.SetResourceVersion(strconv.FormatUint(version, 10))
	object.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return object
}

func (s *stream) expired() (yes bool) {
	s.server.read(s.kind, func(j *journal) { yes = s.version < j.floor })
	return yes
}

// progress is how far a watch has come.
type progress string

const (
	upToDate progress = "UpToDate"
	notTaken progress = "NotTaken" // the receiver has not taken everything
	missed   progress = "Missed"   // changes were forgotten that it had not been sent
)

// more sends what is new.
func (s *stream) more() progress {
	for ; len(s.first) > 0; s.first = s.first[1:] {
		if !s.send(s.first[0]) {
			return notTaken
		}
	}
	s.first = nil // the array behind it has all that there was when the watch began
	var later []change
	state := upToDate
	s.server.read(s.kind, func(j *journal) {
		later = j.since(s.version)
		if s.version < j.floor {
			state = missed
		}
	})
	for _, change := range later {
		if event, ok := s.selected.event(change); ok && !s.send(event) {
			return notTaken
		}
		s.version = change.version
	}
	return state
}
