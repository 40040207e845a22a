package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// result is what a simulation leaves behind.
type result struct {
	binding.Snapshot
	events []binding.Event
}

// reason is why a claim is not Bound, in one line.
type reason struct {
	claim *corev1.PersistentVolumeClaim
	text  string
}

func (s *simulation) result(ctx context.Context) (result, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return result{}, err
	}
	return result{snapshot, s.events()}, nil
}

// reasons has one for each claim that is not Bound.
func (r result) reasons() []reason {
	var reasons []reason
	index := r.index()
	for _, claim := range r.Claims {
		if claim.Status.Phase != corev1.ClaimBound {
			reasons = append(reasons, reason{claim, whyNotBound(claim, r.Snapshot, index)})
		}
	}
	return reasons
}

// index has the volumes and whose they are (M2), so that many claims can be explained.
func (r result) index() *binding.Index {
	index := &binding.Index{}
	index.Load(r.Volumes...)
	for _, claim := range r.Claims {
		if name := claim.Spec.VolumeName; phase.BindCompleted(claim) && index.Owner(name) == (binding.Key{}) {
			index.SetOwner(name, binding.KeyOf(claim)) // the claims are in the order of their names
		}
	}
	return index
}

// whyNotBound explains the search of a claim that may take any volume, and the decision on one that
// names its volume. A decision states its reason anew where the status says nothing yet.
func whyNotBound(claim *corev1.PersistentVolumeClaim, snapshot binding.Snapshot, index *binding.Index) string {
	if claim.Spec.VolumeName == "" && !phase.BindCompleted(claim) {
		text, err := index.Summary(claim, binding.Terms{Class: snapshot.Class(storageclass.OfClaim(claim))})
		if err != nil {
			return err.Error()
		}
		return text
	}
	claim = claim.DeepCopy()
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	action, err := binding.NextForClaim(claim, snapshot, binding.Rules{})
	if action.Why == "" && err != nil {
		return err.Error()
	}
	return action.Why
}

// snapshot reads everything from the server, so that what is not in it does not exist.
func (s *simulation) snapshot(ctx context.Context) (binding.Snapshot, error) {
	var snapshot binding.Snapshot
	for _, kind := range bindingtest.Kinds() {
		objects, err := s.server.List(ctx, kind, "")
		if err != nil {
			return snapshot, err
		}
		for _, object := range objects {
			switch o := object.(type) {
			case *corev1.PersistentVolume:
				snapshot.Volumes = append(snapshot.Volumes, o)
			case *corev1.PersistentVolumeClaim:
				snapshot.Claims = append(snapshot.Claims, o)
				snapshot.Live = append(snapshot.Live, binding.KeyOf(o), binding.VolumeKey(o.Spec.VolumeName))
			case *corev1.Pod:
				snapshot.Pods = append(snapshot.Pods, o)
			case *storagev1.StorageClass:
				snapshot.Classes = append(snapshot.Classes, o)
			}
		}
	}
	return snapshot, nil
}

// events are those sent so far, in order.
func (s *simulation) events() []binding.Event {
	var events []binding.Event
	for _, call := range s.server.Calls() {
		if call.Verb == bindingtest.VerbRecord {
			events = append(events, call.Event)
		}
	}
	return events
}

// trace lists every write and event after the first n calls, a line each, with who made it.
func (s *simulation) trace(n int) []string {
	var lines []string
	for _, call := range s.server.CallsSince(n) {
		if !call.Writes() && call.Verb != bindingtest.VerbRecord {
			continue
		}
		actor := "user"
		if call.Actor != "" {
			actor = call.Actor
		}
		lines = append(lines, actor+": "+oneLine(call.String()))
	}
	return lines
}
