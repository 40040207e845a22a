package main

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/reclaim"
)

// choice is something that a person can do with a volume. The verbs are functions of package reclaim (R7).
type choice struct {
	Verb string `json:"verb"`
	Does string `json:"does"`
	// Risks are what it puts at risk.
	Risks []string `json:"risks,omitempty"`
	// Refused is why the verb refuses; there is no command then.
	Refused []string `json:"refused,omitempty"`
	// Command does it, unless the volume has changed meanwhile; "" where something is still to be named.
	Command string `json:"command,omitempty"`
}

// choices are those for a volume whose claim is gone.
func (w *world) choices(volume *corev1.PersistentVolume) []choice {
	var choices []choice
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		choices = append(choices, keep(volume))
	}
	opened, err := reclaim.Open(volume, w.known(volume))
	open := chosen("Open", "any claim that fits can have it", volume, opened, err)
	open.Risks = append(open.Risks, w.doubtsAbout(volume)...)
	choices = append(choices, open)
	if err == nil {
		choices = append(choices,
			choice{Verb: "Reserve", Does: "one claim can have it, which exists or is to come, at the same risk"},
			choice{Verb: "NextMove", Does: "another claim gets it step by step, in this namespace or another, at the same risk"})
	}
	return choices
}

// doubtsAbout is what only the input speaks against, where no verb can know.
func (w *world) doubtsAbout(volume *corev1.PersistentVolume) []string {
	var doubts []string
	if same := w.sameStorageText(volume); same != "" {
		doubts = append(doubts, "its storage is also that of "+same+": two claims may come to write on it")
	}
	if ref := volume.Spec.ClaimRef; ref != nil && w.unseen(ref) {
		doubts = append(doubts, fmt.Sprintf("the input has no claim in namespace %s: see first that %s/%s is gone", ref.Namespace, ref.Namespace, ref.Name))
	}
	if volume.Spec.ClaimRef == nil {
		doubts = append(doubts, "it has no claimRef: see first that no claim of any namespace that is not in the input is Bound to it")
	}
	return doubts
}

// keep makes the reclaim policy Retain.
func keep(volume *corev1.PersistentVolume) choice {
	return chosen("Retain", "what is still on the storage stays", volume, reclaim.Retain(volume), nil)
}

func chosen(verb, does string, volume *corev1.PersistentVolume, change reclaim.Change, err error) choice {
	c := choice{Verb: verb, Does: does}
	for _, hazard := range change.Hazards {
		c.Risks = append(c.Risks, hazard.String())
	}
	var refusal *reclaim.Refusal
	switch {
	case errors.As(err, &refusal):
		for _, objection := range refusal.Objections {
			c.Refused = append(c.Refused, objection.String())
		}
	case err != nil:
		c.Refused = []string{err.Error()}
	default:
		c.Command = patchCommand(volume, change.Volume)
	}
	return c
}

// known is what the input says of the volume's claim and the pods that use it. Without a claimRef any claim may be Bound to
// it; those in the input are taken for all, if there are any, and doubtsAbout says that this is to be seen.
func (w *world) known(volume *corev1.PersistentVolume) reclaim.Known {
	known := reclaim.Known{Volumes: []*corev1.PersistentVolume{volume}}
	ref := volume.Spec.ClaimRef
	if ref == nil {
		known.Claims, known.AllClaims = w.Claims, len(w.Claims) > 0
		known.Pods = map[string][]*corev1.Pod{}
		for _, owner := range w.Owners(volume.Name) {
			if users, evidence := w.PodsOf(owner.Namespace, owner.Name); evidence == binding.Live {
				known.Pods[owner.Namespace] = append(known.Pods[owner.Namespace], users...)
			}
		}
		return known
	}
	switch claim, evidence := w.Claim(ref.Namespace, ref.Name); evidence {
	case binding.Live:
		known.Claims = []*corev1.PersistentVolumeClaim{claim}
	default: // where the input says nothing, the phase says that it is gone, and doubtsAbout that this is to be seen
		known.Missing = []reclaim.Read{{Kind: reclaim.ReadClaim, Namespace: ref.Namespace, Name: ref.Name}}
	}
	if users, evidence := w.PodsOf(ref.Namespace, ref.Name); evidence == binding.Live {
		known.Pods = map[string][]*corev1.Pod{ref.Namespace: users}
	}
	return known
}

// String is the choice in one line, without its command.
func (c choice) String() string {
	text := c.Verb + ": " + c.Does
	if len(c.Refused) > 0 {
		text += " (refused: " + strings.Join(c.Refused, "; ") + ")"
	}
	if len(c.Risks) > 0 {
		text += " (" + strings.Join(c.Risks, "; ") + ")"
	}
	return text
}
