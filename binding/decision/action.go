package decision

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// Action is a decision: the one next write, or what comes before it, or why there is none. The zero value is Nothing.
//
// A write carries the whole object, changed, with the resourceVersion that the decision was made on.
// The caller sends it, puts the server's reply in place of the old object, and decides again.
type Action struct {
	Kind ActionKind
	// Volume or Claim is the object to write; the other is nil. Volume is also the one to delete, and the one whose storage a
	// deleter or recycler works on.
	Volume *corev1.PersistentVolume
	Claim  *corev1.PersistentVolumeClaim
	// Hook is the registered name of the hook to run, and Request what a provisioner is to make.
	Hook    string
	Request *hooks.ProvisionRequest
	// Token is that of the announcement which an update writes, or of the call of a deleter or recycler (R8). It is zero for
	// all others.
	Token int64
	// Key is what to read (Read) or which claim to decide on first (Requeue).
	Key obj.Key
	// Rule is the number of the behaviour rule that decided, such as "C1" or "B3".
	Rule string
	// Why is the reason in one line, for people.
	Why string
	// Events are to be published once the write has succeeded, or at once if there is none to make.
	Events []Event
	// Retry says whether to decide again though nothing changes. Only a Wait carries it.
	Retry Retry
	// After is the delay of RetryAfter.
	After time.Duration

	// draft says that the object to write shares what is not changed with the one decided on, and edit is what is still to
	// be changed in its metadata; nil: nothing. See Complete.
	draft bool
	edit  func(*metav1.ObjectMeta)

	explains *Explanation // what the decision means for its claim; nil for a write that ExplainClaim takes for done
}

// ActionKind is what the caller of a decision does next.
type ActionKind string

const (
	// Nothing means that all is as it should be.
	Nothing ActionKind = ""
	// UpdateVolume and the three after it mean to write the object, on the resourceVersion that it carries.
	UpdateVolume       ActionKind = "UpdateVolume"
	UpdateVolumeStatus ActionKind = "UpdateVolumeStatus"
	UpdateClaim        ActionKind = "UpdateClaim"
	UpdateClaimStatus  ActionKind = "UpdateClaimStatus"
	// CreateVolume means to create the volume. That it exists already is success (P2).
	CreateVolume ActionKind = "CreateVolume"
	// DeleteVolume means to delete the volume, if it still has this UID and resourceVersion (R3).
	DeleteVolume ActionKind = "DeleteVolume"
	// RunProvisioner means to run the provisioner named Hook with Action.Request, and to add its Answer to the next View.
	RunProvisioner ActionKind = "RunProvisioner"
	// RunDeleter means to do the same with the deleter of the volume's storage. Hook is the name of the provisioner that
	// the volume is annotated with or, if it is not, of the volume's source.
	RunDeleter ActionKind = "RunDeleter"
	// RunRecycler means to do the same with the recycler for the volume's source.
	RunRecycler ActionKind = "RunRecycler"
	// Read means to read what Action.Key names from the server, not from a cache, and to decide again.
	Read ActionKind = "Read"
	// Requeue means to decide on the claim that Action.Key names first, and on this object after it. If that changes neither of
	// them, its events are published.
	Requeue ActionKind = "Requeue"
	// Wait means that nothing can be done until something changes; see Action.Retry.
	Wait ActionKind = "Wait"
)

// Retry is when to decide again though no object has changed.
type Retry string

const (
	// RetryNever means that only a change of some object can alter the decision.
	RetryNever Retry = ""
	// RetryBackoff means that something failed: decide again after a delay that grows with each failure (W6).
	RetryBackoff Retry = "Backoff"
	// RetryAfter means that a hook said when to call it again: decide again after Action.After (Rh).
	RetryAfter Retry = "After"
)

// Writes reports whether the action is a write.
func (a Action) Writes() bool {
	switch a.Kind {
	case UpdateVolume, UpdateVolumeStatus, UpdateClaim, UpdateClaimStatus, CreateVolume, DeleteVolume:
		return true
	}
	return false
}

// Announces reports whether the action is the write of an announcement. The time until the hook is called counts from before
// it is sent (R8).
func (a Action) Announces() bool { return a.Token != 0 && a.Writes() }

// CheckVersion returns an *obj.InvalidError for a write without resourceVersion, which the server would take as "overwrite
// anything". Whoever carries out an action calls it first. It is rule B5.
func (a Action) CheckVersion() error {
	written := a.written()
	if written == nil || a.Kind == CreateVolume || written.GetResourceVersion() != "" {
		return nil
	}
	return &obj.InvalidError{Object: a.Target().String(), Field: "metadata.resourceVersion", Problem: "is missing"}
}

// written returns the object that the action writes; nil if it writes none.
func (a Action) written() obj.Object {
	switch {
	case !a.Writes():
		return nil
	case a.Volume != nil:
		return a.Volume
	}
	return a.Claim
}

// MarshalJSON returns the action with the object to write, complete with apiVersion and kind:
//
//	{"kind": "UpdateVolume", "rule": "L4", "on": "pv/a", "object": {…}}
func (a Action) MarshalJSON() ([]byte, error) {
	var object runtime.Object
	if written := a.written(); written != nil {
		object = written.DeepCopyObject()
		object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(a.Target().Kind)))
	}
	return json.Marshal(struct {
		Kind   ActionKind     `json:"kind"`
		Rule   string         `json:"rule"`
		On     obj.Key        `json:"on,omitzero"`
		Object runtime.Object `json:"object,omitempty"`
	}{a.Kind, a.Rule, a.Target(), object})
}

// RunsHook reports whether the action is the call of a hook.
func (a Action) RunsHook() bool {
	return a.Kind == RunProvisioner || a.Kind == RunDeleter || a.Kind == RunRecycler
}

// Target returns the key of the object that the action is about: the one to write or to read, the claim to decide on first,
// or the volume whose storage is to be made, deleted or recycled.
func (a Action) Target() obj.Key {
	switch {
	case a.Request != nil:
		return obj.VolumeKey(a.Request.Volume.Name)
	case a.Volume != nil:
		return obj.VolumeKey(a.Volume.Name)
	case a.Claim != nil:
		return obj.KeyOf(a.Claim)
	}
	return a.Key
}

// IsShownBy reports whether an object has what the action writes, as far as events tell of it: the phase, or the claimRef, the name of the
// volume and the announcement.
func (a Action) IsShownBy(object obj.Object) bool {
	if announcement, _ := reclaim.AnnouncementOf(object); a.Announces() && announcement.Token != a.Token {
		return false
	}
	if volume, ok := object.(*corev1.PersistentVolume); ok && a.Announces() && !StaysMeanwhile(volume) {
		return false
	}
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		switch a.Kind {
		case UpdateVolume:
			return equality.Semantic.DeepEqual(a.Volume.Spec.ClaimRef, object.Spec.ClaimRef)
		case UpdateVolumeStatus:
			return a.Volume.Status.Phase == object.Status.Phase && a.Volume.Status.Message == object.Status.Message
		}
	case *corev1.PersistentVolumeClaim:
		switch a.Kind {
		case UpdateClaim:
			return obj.NamedVolume(a.Claim) == obj.NamedVolume(object)
		case UpdateClaimStatus:
			return a.Claim.Status.Phase == object.Status.Phase
		}
	}
	return false
}

// About returns the UID of the object that a hook is run for: of the volume or, where there is none yet, of the claim.
func (a Action) About() types.UID {
	switch {
	case a.Request != nil:
		return a.Request.Claim.UID
	case a.Volume.UID == "" && a.Volume.Spec.ClaimRef != nil:
		return a.Volume.Spec.ClaimRef.UID
	}
	return a.Volume.UID
}

// String returns the action in one line: "B1 UpdateVolume pv/a: it fits default/data best".
func (a Action) String() string {
	text := a.Rule + " " + cmp.Or(string(a.Kind), "Nothing")
	if a.Target() != (obj.Key{}) {
		text += " " + a.Target().String()
	}
	return text + ": " + a.Why
}

// Event is something to tell the people who own an object.
type Event struct {
	On      obj.Key
	UID     types.UID // of the object that the event is on
	Type    string    // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason  EventReason
	Message string // one line
	Hook    string // the name of the hook that failed; empty if none did
	Tenant  string // the namespace that the event is sent for: that of the claim, or of the volume's claimRef; empty if it has none

	same string // what makes the event the same as an earlier one; "": the message
}

// EventSource is the component that events come from; dashboards match it (N).
const EventSource = "persistentvolume-controller"

// EventReason is the reason of an event. The values are an interface that dashboards match (N).
type EventReason string

const (
	EventClaimLost            EventReason = "ClaimLost"                 // C10
	EventClaimMisbound        EventReason = "ClaimMisbound"             // C10
	EventExternalProvisioning EventReason = "ExternalProvisioning"      // P3
	EventFailedBinding        EventReason = "FailedBinding"             // C5, C6, C9, C11, V1
	EventFailedUpdate         EventReason = "FailedUpdate"              // N
	EventProvisioningFailed   EventReason = "ProvisioningFailed"        // P1, P2
	EventProvisioningCleanup  EventReason = "ProvisioningCleanupFailed" // P2
	EventProvisioned          EventReason = "ProvisioningSucceeded"     // P2
	EventServerWentBack       EventReason = "ServerWentBack"            // W8
	EventUnknownReclaimPolicy EventReason = reclaim.EventUnknownPolicy  // R5
	EventVolumeDelete         EventReason = "VolumeDelete"              // R3
	EventVolumeFailedDelete   EventReason = reclaim.EventFailedDelete   // R3
	EventVolumeFailedRecycle  EventReason = reclaim.EventFailedRecycle  // R4
	EventVolumeRecycled       EventReason = "VolumeRecycled"            // R4
	EventVolumeMismatch       EventReason = "VolumeMismatch"            // C7, M12, V2
	EventWaitForConsumer      EventReason = "WaitForFirstConsumer"      // C3
	EventWaitForPodScheduled  EventReason = "WaitForPodScheduled"       // C3
)

// failedIn returns the events with the name of the hook that failed.
func failedIn(hook string, events []Event) []Event {
	named := slices.Clone(events)
	for i := range named {
		named[i].Hook = hook
	}
	return named
}

// Identity returns the part of the event that is equal in two events which say the same thing.
func (e Event) Identity() Event {
	e.Message, e.Tenant = cmp.Or(e.same, e.Message), ""
	return e
}

// String returns the event in one line.
func (e Event) String() string {
	return e.Type + " " + string(e.Reason) + " " + e.On.String() + ": " + e.Message
}

// messageLimit bounds a message; the API server takes no more than 1,024 bytes.
const messageLimit = 1000

func normal(on obj.Object, reason EventReason, message string) Event {
	return newEvent(on, corev1.EventTypeNormal, reason, message)
}

func warning(on obj.Object, reason EventReason, message string) Event {
	return newEvent(on, corev1.EventTypeWarning, reason, message)
}

// ServerWentBack returns the event that tells, on one of its objects, that the server went back in time (W8).
func ServerWentBack(on obj.Object) Event {
	return warning(on, EventServerWentBack, "the API server shows an older state than before, here resourceVersion "+on.GetResourceVersion()+
		": it may have been restored from a backup. Nothing is destroyed until every claim and volume has been read anew."+
		" Look for storage that was made since the backup and has no volume any more, and for volumes whose storage was deleted since")
}

// newEvent returns an event on a claim or volume. The message becomes one line and is cut where it is too long.
func newEvent(on obj.Object, kind string, reason EventReason, message string) Event {
	key, tenant := obj.VolumeKey(on.GetName()), on.GetNamespace()
	if tenant != "" {
		key = obj.ClaimKey(on.GetNamespace(), on.GetName())
	} else if volume, ok := on.(*corev1.PersistentVolume); ok {
		tenant = obj.ReferencedClaim(volume).Namespace
	}
	return Event{On: key, UID: on.GetUID(), Type: kind, Reason: reason, Message: oneline.Text(message, messageLimit), Tenant: tenant}
}

// Complete returns the action of a draft: the object to write shares nothing with the one decided on, and has its annotations
// and finalizers. A draft is decided in time that hardly depends on how large the object is. Complete copies the object, and
// needs no lock (X9). An action that is complete stays as it is.
func (a Action) Complete() Action {
	switch {
	case !a.draft:
		return a
	case a.Volume != nil:
		a.Volume = a.Volume.DeepCopy()
		a.finish(&a.Volume.ObjectMeta)
	default:
		a.Claim = a.Claim.DeepCopy()
		a.finish(&a.Claim.ObjectMeta)
	}
	return a
}

func (a *Action) finish(metadata *metav1.ObjectMeta) {
	if a.edit != nil {
		a.edit(metadata)
	}
	a.draft, a.edit = false, nil
}

// update writes a changed object, which shares what is not changed. edit changes its metadata; nil: it stays.
func update(changed obj.Object, edit func(*metav1.ObjectMeta), rule, why string) Action {
	a := Action{Kind: UpdateClaim, Rule: rule, Why: why, draft: true, edit: edit}
	switch changed := changed.(type) {
	case *corev1.PersistentVolume:
		a.Kind, a.Volume = UpdateVolume, changed
	case *corev1.PersistentVolumeClaim:
		a.Claim = changed
	}
	return a
}

// updateClaimStatus writes the status of a claim that shares the rest.
func updateClaimStatus(changed *corev1.PersistentVolumeClaim, rule, why string) Action {
	return Action{Kind: UpdateClaimStatus, Claim: changed, Rule: rule, Why: why, draft: true}
}

// setPhase gives the volume another phase. The message and reason of the earlier phase go with it (B2).
func setPhase(volume *corev1.PersistentVolume, to corev1.PersistentVolumePhase, rule, why string) Action {
	changed := *volume
	changed.Status.Phase, changed.Status.Reason, changed.Status.Message = to, "", ""
	return Action{Kind: UpdateVolumeStatus, Volume: &changed, Rule: rule, Why: why, draft: true}
}

// ReadLive returns the action that reads the key from the server.
func ReadLive(key obj.Key, rule, why string) Action {
	return Action{Kind: Read, Key: key, Rule: rule, Why: why}
}

func requeue(claim obj.Key, rule, why string) Action {
	return Action{Kind: Requeue, Key: claim, Rule: rule, Why: why}
}

func nothing(rule, why string) Action { return Action{Rule: rule, Why: why} }

func wait(rule, why string, events ...Event) Action {
	return Action{Kind: Wait, Rule: rule, Why: oneline.Text(why, messageLimit), Events: events}
}

// onceLive returns the action if there is nothing to write or to run, or what it is based on was read live. Otherwise it
// returns the read that comes before. An announcement takes nothing from anybody, and is followed by all reads (R8).
func (a Action) onceLive(source Source, key obj.Key, rule, why string) Action {
	if (a.Writes() && !a.Announces() || a.RunsHook()) && !source.IsLive() {
		read := ReadLive(key, rule, why)
		read.explains = a.explains
		return read
	}
	return a
}

// withBackoff makes a Wait end after a growing delay.
func (a Action) withBackoff() Action {
	a.Retry = RetryBackoff
	return a
}

// Beside returns the action with what another one, a Wait or nothing, says beside it: its events, each once, and when to decide again if
// that is sooner. An action that is to be performed comes first, and stays as it is. What the action means for its claim stays too.
func (a Action) Beside(other Action) Action {
	switch {
	case other.Kind != Wait || a.Kind == Read || a.Writes() || a.RunsHook():
		return a
	case a.Kind == "" || a.Kind == Nothing:
		other.Events, other.explains = withEvents(a.Events, other.Events), cmp.Or(a.explains, other.explains)
		return other
	}
	a.Events = withEvents(a.Events, other.Events)
	switch {
	case a.Retry == RetryNever:
		a.Retry, a.After = other.Retry, other.After
	case other.Retry == RetryNever:
	case a.After == 0 || other.After > 0 && other.After < a.After:
		a.After = other.After
	}
	if other.Retry == RetryBackoff {
		a.Retry = RetryBackoff
	}
	return a
}

// withEvents returns the events, and after them those of the others that are not among them.
func withEvents(events, others []Event) []Event {
	all := slices.Clone(events)
	for _, event := range others {
		if !slices.Contains(all, event) {
			all = append(all, event)
		}
	}
	return all
}
