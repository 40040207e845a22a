package binding

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// EventSource is the component that events come from; dashboards match it (N).
const EventSource = "persistentvolume-controller"

// EventReason is the reason of an event. The values are an interface that dashboards match (N).
type EventReason string

const (
	EventClaimLost            EventReason = "ClaimLost"                 // C10
	EventClaimMisbound        EventReason = "ClaimMisbound"             // C10
	EventExternalProvisioning EventReason = "ExternalProvisioning"      // P3
	EventFailedBinding        EventReason = "FailedBinding"             // C5, C9, C11, V1
	EventProvisioningFailed   EventReason = "ProvisioningFailed"        // P1, P2
	EventProvisioningCleanup  EventReason = "ProvisioningCleanupFailed" // P2
	EventProvisioned          EventReason = "ProvisioningSucceeded"     // P2
	EventUnknownReclaimPolicy EventReason = reclaim.EventUnknownPolicy  // R5
	EventVolumeDelete         EventReason = "VolumeDelete"              // R3
	EventVolumeFailedDelete   EventReason = reclaim.EventFailedDelete   // R3
	EventVolumeFailedRecycle  EventReason = reclaim.EventFailedRecycle  // R4
	EventVolumeRecycled       EventReason = "VolumeRecycled"            // R4
	EventVolumeMismatch       EventReason = "VolumeMismatch"            // C7, M12, V2
	EventWaitForConsumer      EventReason = "WaitForFirstConsumer"      // C3
	EventWaitForPodScheduled  EventReason = "WaitForPodScheduled"       // C3
)

// Event is something to tell the people who own an object.
type Event struct {
	On      obj.Key
	UID     types.UID // of the object that the event is on
	Type    string    // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason  EventReason
	Message string // one line

	same string // what makes the event the same as an earlier one; "": the message
}

// identity is what two events share that say the same thing.
func (e Event) identity() Event {
	if e.same != "" {
		e.Message = e.same
	}
	return e
}

// String is the event in one line.
func (e Event) String() string {
	return e.Type + " " + string(e.Reason) + " " + e.On.String() + ": " + e.Message
}

// eventLimit bounds a message; the API server takes no more than 1,024 bytes.
const eventLimit = 1000

// newEvent is an event on a claim or volume. The message becomes one line and is cut where it is too long.
func newEvent(on obj.Object, kind string, reason EventReason, message string) Event {
	key := obj.VolumeKey(on.GetName())
	if on.GetNamespace() != "" {
		key = obj.ClaimKey(on.GetNamespace(), on.GetName())
	}
	return Event{On: key, UID: on.GetUID(), Type: kind, Reason: reason, Message: oneline.Text(message, eventLimit)}
}

func warning(on obj.Object, reason EventReason, message string) Event {
	return newEvent(on, corev1.EventTypeWarning, reason, message)
}

func normal(on obj.Object, reason EventReason, message string) Event {
	return newEvent(on, corev1.EventTypeNormal, reason, message)
}
