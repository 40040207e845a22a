package clientgo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
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
	on := reference(event)
	r.Events.Event(&on, event.Type, string(event.Reason), event.Message)
}

func reference(event decision.Event) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       string(event.On.Kind),
		Namespace:  event.On.Namespace,
		Name:       event.On.Name,
		UID:        event.UID,
	}
}

// StartRecorder publishes events through the clientset until the context ends, and what there is to be sent then for up to ten seconds more. It does so in the background. Like events are
// aggregated, and an object that has many gets fewer, as with other controllers. But none is dropped because others are many: the
// namespaces, the claim's or that of the volume's claimRef, are served in turn, an event takes the place of one of the same object and reason that was not sent yet, and what the
// server did not take, though it may later, is sent again. Of a namespace that has ten thousand to be sent, now or again, more are dropped.
//
// Events share the clientset's rate limits. Where those are tight, a clientset for events alone keeps them from
// delaying writes.
func StartRecorder(ctx context.Context, clientset kubernetes.Interface) binding.Recorder {
	return startRecorder(ctx, clientset)
}

func startRecorder(ctx context.Context, clientset kubernetes.Interface) *recorder {
	r := &recorder{clientset: clientset, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}), more: make(chan struct{}, 1), ended: make(chan struct{})}
	go r.run(ctx)
	return r
}
