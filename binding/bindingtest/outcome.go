package bindingtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Outcome is what SettleOn left undone.
type Outcome struct {
	// Unbound are the claims whose phase is not Bound, in the order of their names.
	Unbound []UnboundClaim
	// Unplaced are the pods that name claims and have no node, in the order of their names, unless pods are left to others.
	Unplaced []UnplacedPod
	// Failed are the volumes whose phase is Failed, because their storage could not be deleted or recycled.
	Failed []FailedVolume
}

// UnboundClaim is a claim that is not Bound.
type UnboundClaim struct {
	Claim obj.Key
	// State is what the claim waits for; "" if it is malformed.
	State decision.ClaimState
	// Why says it in one line, and what failed.
	Why string
}

// UnplacedPod is a pod that has no node.
type UnplacedPod struct {
	Pod obj.Key
	// Why says in one line why it has none.
	Why string
}

// FailedVolume is a volume whose storage could not be deleted or recycled.
type FailedVolume struct {
	Volume obj.Key
	// Why says in one line what failed.
	Why string
}

// String returns one line for each claim that is not Bound, each pod that is not placed and each volume that is Failed; "" if there
// is none.
func (o Outcome) String() string {
	var lines []string
	for _, claim := range o.Unbound {
		lines = append(lines, claim.Claim.String()+": "+claim.Why)
	}
	for _, pod := range o.Unplaced {
		lines = append(lines, pod.Pod.String()+": "+pod.Why)
	}
	for _, volume := range o.Failed {
		lines = append(lines, volume.Volume.String()+": Failed: "+volume.Why)
	}
	return strings.Join(lines, "\n")
}

// Err returns an error with the text of String unless every claim is Bound and every pod placed.
func (o Outcome) Err() error {
	if len(o.Unbound)+len(o.Unplaced) == 0 {
		return nil
	}
	return errors.New(o.String())
}

// TB is what MustBindOn uses of a *testing.T, so that this package does not import package testing.
type TB interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

// MustBindOn calls SettleOn, and fails the test unless every claim is Bound, every pod placed, and no error remains. The message
// says why. It may be called again and again, as the test goes on.
func MustBindOn(t TB, api API, options SettleOptions) {
	t.Helper()
	outcome, err := SettleOn(t.Context(), api, options)
	if err := errors.Join(outcome.Err(), err); err != nil {
		t.Fatalf("not everything is bound:\n%v", err)
	}
}

// outcome returns what is left undone.
func (s *settlement) outcome() Outcome {
	var o Outcome
	if s.world == nil {
		return o
	}
	served := s.drivers().Union(s.options.Hooks.Names().Provisioners)
	for _, claim := range all[*corev1.PersistentVolumeClaim](s.world) {
		if claim.Status.Phase != corev1.ClaimBound {
			o.Unbound = append(o.Unbound, s.unbound(claim, served))
		}
	}
	o.Unplaced = slices.Clone(s.pods.waiting)
	for _, volume := range all[*corev1.PersistentVolume](s.world) {
		if volume.Status.Phase == corev1.VolumeFailed {
			o.Failed = append(o.Failed, FailedVolume{obj.VolumeKey(volume.Name), volume.Status.Message})
		}
	}
	return o
}

// unbound says why a claim is not Bound, given the provisioners that somebody serves.
func (s *settlement) unbound(claim *corev1.PersistentVolumeClaim, served sets.Set[string]) UnboundClaim {
	key := obj.KeyOf(claim)
	options := s.options.Binding
	options.Hooks = s.options.Hooks.Names()
	explanation, err := decision.ExplainClaim(claim, s.world, options)
	parts := []string{explanation.String()}
	if explanation.State == "" && err != nil {
		parts[0] = err.Error()
	}
	if name := explanation.Provisioner; explanation.State == decision.ClaimAwaitsProvisioner && !served.Has(name) {
		parts = append(parts, fmt.Sprintf("SettleOptions.Provisioners leaves %s to somebody else", name))
	}
	for _, warning := range s.warnings[key] {
		if !strings.Contains(parts[0], warning) {
			parts = append(parts, warning)
		}
	}
	if why := s.pods.refused[key]; why != "" {
		parts = append(parts, why)
	}
	return UnboundClaim{key, explanation.State, strings.Join(parts, "; ")}
}
