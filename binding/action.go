package binding

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// ActionKind is what an Action asks its caller to do.
type ActionKind string

const (
	// Nothing: all is as it should be.
	Nothing ActionKind = ""
	// UpdateVolume and the three after it: write the object, on the resourceVersion it carries.
	UpdateVolume       ActionKind = "UpdateVolume"
	UpdateVolumeStatus ActionKind = "UpdateVolumeStatus"
	UpdateClaim        ActionKind = "UpdateClaim"
	UpdateClaimStatus  ActionKind = "UpdateClaimStatus"
	// CreateVolume: create it. That it exists already is success (P2).
	CreateVolume ActionKind = "CreateVolume"
	// DeleteVolume: delete the object, if it still has this UID and resourceVersion (R3).
	DeleteVolume ActionKind = "DeleteVolume"
	// RunProvisioner: run the provisioner named Hook with Action.Request, and tell the next decision its answer.
	RunProvisioner ActionKind = "RunProvisioner"
	// RunDeleter: the same with the deleter of the volume's storage. Hook is the name of the provisioner that
	// the volume is annotated with or, if it is not, of the volume's source.
	RunDeleter ActionKind = "RunDeleter"
	// RunRecycler: the same with the recycler for the volume's source.
	RunRecycler ActionKind = "RunRecycler"
	// Read: read what Action.Key names from the server, not from a cache, and ask again.
	Read ActionKind = "Read"
	// HandOver: the claim that Action.Key names goes next. Ask again once it has been.
	HandOver ActionKind = "HandOver"
	// Wait: nothing can be done until something changes; see Action.Retry.
	Wait ActionKind = "Wait"
)

// Retry is when a decision should be asked for again though nothing it was told has changed.
type Retry string

const (
	// RetryNever: only a change of some object can alter the decision.
	RetryNever Retry = ""
	// RetryBackoff: something failed; again after a delay that grows with each failure (W6).
	RetryBackoff Retry = "Backoff"
	// RetryAfter: a hook asked to be called again after a time (Rh).
	RetryAfter Retry = "After"
)

// Action is a decision: the one next write, or why there is none. The zero value is Nothing.
//
// A write carries the whole object, changed, with the resourceVersion that the decision was made on.
// The caller sends it, puts the server's reply in place of the old object, and asks again.
type Action struct {
	Kind ActionKind
	// Volume or Claim is the object to write; the other is nil. Volume is also what to delete or to scrub.
	Volume *corev1.PersistentVolume
	Claim  *corev1.PersistentVolumeClaim
	// Hook is the registered name of the hook to run, and Request what a provisioner is asked for.
	Hook    string
	Request *ProvisionRequest
	// Key is what to read (Read) or which claim goes next (HandOver).
	Key obj.Key
	// Rule is the number of the behaviour rule that decided, such as "C1" or "B3".
	Rule string
	// Why is the reason in one line, for people.
	Why string
	// Events are to be published once the write is in, or at once if there is none to make.
	Events []Event
	// Retry says whether to ask again though nothing changes. Only a Wait carries it.
	Retry Retry
	// After is when, for RetryAfter.
	After time.Duration

	explains *Explanation // what the decision means for the claim that it is about; see ExplainClaim
}

// Writes reports whether the action is a write.
func (a Action) Writes() bool {
	switch a.Kind {
	case UpdateVolume, UpdateVolumeStatus, UpdateClaim, UpdateClaimStatus, CreateVolume, DeleteVolume:
		return true
	}
	return false
}

// RunsHook reports whether the action is the call of a hook.
func (a Action) RunsHook() bool {
	return a.Kind == RunProvisioner || a.Kind == RunDeleter || a.Kind == RunRecycler
}

// Target names what the action is about: the object to write, to read or to go next, or the volume whose
// storage is to be made, deleted or scrubbed.
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

// about is the UID of the object that a hook is run for: of the volume or, where there is none yet, of the claim.
func (a Action) about() types.UID {
	switch {
	case a.Request != nil:
		return a.Request.Claim.UID
	case a.Volume.UID == "" && a.Volume.Spec.ClaimRef != nil:
		return a.Volume.Spec.ClaimRef.UID
	}
	return a.Volume.UID
}

// String is the action in one line: "B1 UpdateVolume pv/a: it fits default/data best".
func (a Action) String() string {
	kind, target := string(a.Kind), ""
	if kind == "" {
		kind = "Nothing"
	}
	if a.Target() != (obj.Key{}) {
		target = " " + a.Target().String()
	}
	return a.Rule + " " + kind + target + ": " + a.Why
}

// Result is what a finished sync asks of whoever drives the Controller.
type Result struct {
	// Next are the keys to sync next, in order; none twice.
	Next []obj.Key
	// After, if not zero, is how long to wait before the same key is synced again.
	After time.Duration
}
