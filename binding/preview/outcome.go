package preview

import (
	"fmt"
	"strings"
)

// Outcome is what would happen. Its String is for people, its JSON for programs.
type Outcome struct {
	// Effects are those of the changes.
	Effects
	// Unsettled is what would happen without the changes, for the cluster was not at rest.
	Unsettled Effects `json:"unsettled"`
	// Problems are the objects that no decision can be made on, a line each.
	Problems []string `json:"problems"`
}

// Effects are what happens to objects and data, each list in the order of the objects' kinds and names.
type Effects struct {
	// Phases are the volumes and claims whose phase changes. A claim that becomes Lost is among them.
	Phases []PhaseChange `json:"phases"`
	// Storage is what becomes of the data.
	Storage []StorageEffect `json:"storage"`
	// Blocked are the objects that are being deleted and do not go.
	Blocked []Blocked `json:"blocked"`
}

// Empty reports whether nothing happens.
func (e Effects) Empty() bool { return len(e.Phases)+len(e.Storage)+len(e.Blocked) == 0 }

// PhaseChange is a volume or claim whose phase changes.
type PhaseChange struct {
	Object string `json:"object"` // such as "pv/pv-1" or "pvc/shop/orders"
	Before string `json:"before"` // the phase; "none" if it did not exist
	After  string `json:"after"`  // the phase; "gone" if it exists no more
}

// String returns "pv/pv-1: Bound -> Released".
func (p PhaseChange) String() string { return p.Object + ": " + p.Before + " -> " + p.After }

// StorageOutcome is what becomes of the storage of a volume.
type StorageOutcome string

// The outcomes for storage.
const (
	// Deleted means that the storage is deleted, and the data with it.
	Deleted StorageOutcome = "Deleted"
	// Scrubbed means that the data is deleted, and the volume is free for others.
	Scrubbed StorageOutcome = "Scrubbed"
	// Kept means that the storage stays, and its volume, which nobody has.
	Kept StorageOutcome = "Kept"
	// Stranded means that the storage stays, and no object stands for it any more.
	Stranded StorageOutcome = "Stranded"
)

// StorageEffect says what becomes of the storage of a volume, by whom and why.
type StorageEffect struct {
	Volume  string         `json:"volume"`
	Outcome StorageOutcome `json:"outcome"`
	By      string         `json:"by,omitempty"`    // the hook, CSI driver or provisioner that does it; "" for nobody
	Claim   string         `json:"claim,omitempty"` // whose data it is, as "shop/orders"; "" if no claim had the volume
	Why     string         `json:"why"`
	Once    string         `json:"once,omitempty"` // what is awaited before it is Deleted or Scrubbed; "" for nothing
}

// String returns "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain", or
// "storage of pv/pv-1: Deleted by hostPath, with the data of shop/orders, once it is detached from node n1".
func (s StorageEffect) String() string {
	text := fmt.Sprintf("storage of pv/%s: %s", s.Volume, s.Outcome)
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Claim != "" {
		text += ", with the data of " + s.Claim
	}
	if s.Once != "" {
		text += ", once " + s.Once
	}
	if s.By == "" {
		text += ": " + s.Why
	}
	return text
}

// Blocked is an object that is being deleted and does not go.
type Blocked struct {
	Object     string   `json:"object"`
	Finalizers []string `json:"finalizers"`
	Users      []string `json:"users,omitempty"` // the pods that use the claim, or the claim that has the volume
}

// String returns "pvc/shop/orders stays: held by kubernetes.io/pvc-protection, used by pod/shop/web".
func (b Blocked) String() string {
	text := b.Object + " stays: held by " + strings.Join(b.Finalizers, ", ")
	if len(b.Users) > 0 {
		text += ", used by " + strings.Join(b.Users, ", ")
	}
	return text
}

// String has a line for each effect. What would happen anyway comes last, indented.
func (o Outcome) String() string {
	lines := o.Effects.lines()
	if len(lines) == 0 {
		lines = []string{"nothing changes"}
	}
	for _, problem := range o.Problems {
		lines = append(lines, "no decision: "+problem)
	}
	if !o.Unsettled.Empty() {
		lines = append(lines, "without the changes, for it was not at rest:")
		for _, line := range o.Unsettled.lines() {
			lines = append(lines, "  "+line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func (e Effects) lines() (lines []string) {
	for _, phase := range e.Phases {
		lines = append(lines, phase.String())
	}
	for _, storage := range e.Storage {
		lines = append(lines, storage.String())
	}
	for _, blocked := range e.Blocked {
		lines = append(lines, blocked.String())
	}
	return lines
}
