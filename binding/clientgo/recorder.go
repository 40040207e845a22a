package clientgo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
)

// Recorder is a binding.Recorder on an EventRecorder of client-go. The component of that should be decision.EventSource,
// for dashboards match it (N).
type Recorder struct {
	Events record.EventRecorder
}

var _ binding.Recorder = Recorder{}

// Record publishes an event.
func (r Recorder) Record(event decision.Event) {
	on := &corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       string(event.On.Kind),
		Namespace:  event.On.Namespace,
		Name:       event.On.Name,
		UID:        event.UID,
	}
	r.Events.Event(on, event.Type, string(event.Reason), event.Message)
}

// StartRecorder publishes events through the clientset until the context ends. It does so in the background, as other
// controllers do: like events are aggregated, an object that has many gets fewer, and what the server does not accept
// in time is dropped.
//
// Events share the clientset's rate limits. Where those are tight, a clientset for events alone keeps them from
// delaying writes.
func StartRecorder(ctx context.Context, clientset kubernetes.Interface) Recorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	return Recorder{broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: decision.EventSource})}
}
