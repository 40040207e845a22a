package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// operation is something that a person can do with a volume. The operations are functions of package reclaim (R7).
type operation struct {
	Name string `json:"operation"`
	Does string `json:"does"`
	// Warnings are what it puts at risk.
	Warnings []string `json:"warnings,omitempty"`
	// Refused is why it is refused; there is no command then.
	Refused []string `json:"refused,omitempty"`
	// Command does it, unless the volume has changed meanwhile; "" where something is still to be named.
	Command string `json:"command,omitempty"`
}

// The names of the operations.
const (
	makeAvailable = "make Available"
	setToRetain   = "set policy to Retain"
	reserve       = "reserve"
	transfer      = "transfer"
)

// operations returns those for a volume whose claim is gone.
func (c *cluster) operations(volume *corev1.PersistentVolume) []operation {
	var operations []operation
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		operations = append(operations, setRetain(volume))
	}
	change, err := reclaim.MakeAvailable(volume, c.known(volume))
	available := newOperation(makeAvailable, "any claim that fits can have it", volume, change, err)
	available.Warnings = append(available.Warnings, c.inputWarnings(volume)...)
	operations = append(operations, available)
	if err == nil {
		operations = append(operations,
			operation{Name: reserve, Does: "one claim can have it, which exists or is to come, at the same risk"},
			operation{Name: transfer, Does: "another claim gets it step by step, in this namespace or another, at the same risk"})
	}
	return operations
}

// inputWarnings returns the warnings that follow from the input alone, which package reclaim does not get.
func (c *cluster) inputWarnings(volume *corev1.PersistentVolume) []string {
	var warnings []string
	if same := c.sameStorageText(volume); same != "" {
		warnings = append(warnings, "its storage is also that of "+same+": two claims may come to write on it")
	}
	if ref := volume.Spec.ClaimRef; ref != nil && c.unknown(ref) {
		warnings = append(warnings, fmt.Sprintf("the input has no claim in namespace %s: see first that %s/%s is gone", ref.Namespace, ref.Namespace, ref.Name))
	}
	if volume.Spec.ClaimRef == nil {
		warnings = append(warnings, "it has no claimRef: see first that no claim of any namespace that is not in the input is Bound to it")
	}
	return warnings
}

// setRetain returns the operation that sets the reclaim policy to Retain.
func setRetain(volume *corev1.PersistentVolume) operation {
	return newOperation(setToRetain, "what is still on the storage stays", volume, reclaim.SetRetain(volume), nil)
}

// newOperation returns the operation that makes the change, or is refused for the error.
func newOperation(name, does string, volume *corev1.PersistentVolume, change reclaim.Change, err error) operation {
	o := operation{Name: name, Does: does}
	for _, warning := range change.Warnings {
		o.Warnings = append(o.Warnings, warning.String())
	}
	var refused *reclaim.Error
	switch {
	case errors.As(err, &refused):
		for _, reason := range refused.Reasons {
			o.Refused = append(o.Refused, reason.String())
		}
	case err != nil:
		o.Refused = []string{err.Error()}
	default:
		o.Command = patchCommand(volume, change.Volume)
	}
	return o
}

// known returns what the input has of the claims that may have data on the volume, and of their pods: the one in its claimRef and those that
// name it. Without a claimRef any claim may be Bound to it; those in the input are taken for all, if there are any. What the input may lack
// inputWarnings says to verify.
func (c *cluster) known(volume *corev1.PersistentVolume) reclaim.Known {
	known := reclaim.Known{Volumes: []*corev1.PersistentVolume{volume}, Claims: c.Naming(volume.Name), Pods: map[string][]*corev1.Pod{}}
	users := make(map[obj.Key]bool, len(known.Claims)+1)
	for _, claim := range known.Claims {
		users[obj.KeyOf(claim)] = true
	}
	if ref := volume.Spec.ClaimRef; ref == nil {
		known.Claims, known.AllClaims = c.Claims, len(c.Claims) > 0
	} else if key := obj.ClaimKey(ref.Namespace, ref.Name); !users[key] {
		users[key] = true
		if claim, _ := c.Claim(ref.Namespace, ref.Name); claim != nil {
			known.Claims = append(slices.Clone(known.Claims), claim)
		} else { // the phase tells that it is gone
			known.Missing = []obj.Key{key}
		}
	}
	for user := range users {
		if pods, source := c.PodsOf(user.Namespace, user.Name); source == decision.FromLiveRead {
			known.Pods[user.Namespace] = append(known.Pods[user.Namespace], pods...)
		}
	}
	return known
}

// String returns the operation in one line, without its command.
func (o operation) String() string {
	text := o.Name + ": " + o.Does
	if len(o.Refused) > 0 {
		text += " (refused: " + strings.Join(o.Refused, "; ") + ")"
	}
	if len(o.Warnings) > 0 {
		text += " (" + strings.Join(o.Warnings, "; ") + ")"
	}
	return text
}

// patchCommand returns the kubectl command that makes the volume before into the one after, if nobody has changed it
// meanwhile.
func patchCommand(before, after *corev1.PersistentVolume) string {
	patch := difference(fieldsOf(before), fieldsOf(after))
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = before.ResourceVersion
	text, err := json.Marshal(patch)
	if err != nil {
		return ""
	}
	return "kubectl patch pv " + before.Name + " --type=merge -p '" + strings.ReplaceAll(string(text), "'", `'\''`) + "'"
}

func fieldsOf(volume *corev1.PersistentVolume) map[string]any {
	var fields map[string]any
	text, err := json.Marshal(volume)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	return fields
}

// difference returns the merge patch (RFC 7386) that turns before into after.
func difference(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		was, isObject := before[key].(map[string]any)
		is, stillObject := value.(map[string]any)
		switch {
		case reflect.DeepEqual(before[key], value):
		case isObject && stillObject:
			patch[key] = difference(was, is)
		default:
			patch[key] = value
		}
	}
	return patch
}
