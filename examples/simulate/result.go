package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/examples/internal/dump"
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
	return result{snapshot, s.server.Events()}, nil
}

// reasons has one for each claim that is not Bound.
func (r result) reasons() []reason {
	var reasons []reason
	view := r.view()
	for _, claim := range r.Claims {
		if claim.Status.Phase != corev1.ClaimBound {
			reasons = append(reasons, reason{claim, view.whyNotBound(claim)})
		}
	}
	return reasons
}

// view is a snapshot that chooses from an Index, so that many claims can be explained.
type view struct {
	binding.Snapshot
	index *binding.Index
}

func (r result) view() view {
	v := view{r.Snapshot, &binding.Index{}}
	v.index.Load(r.Volumes...)
	for _, claim := range r.Claims {
		if name := claim.Spec.VolumeName; phase.BindCompleted(claim) && v.Owner(name) == (binding.Key{}) {
			v.index.SetOwner(name, binding.KeyOf(claim)) // the claims are in the order of their names
		}
	}
	return v
}

func (v view) Owner(volume string) binding.Key { return v.index.Owner(volume) }

func (v view) Find(claim *corev1.PersistentVolumeClaim) (binding.Match, error) {
	return v.index.Find(claim, v.terms(claim))
}

func (v view) Summary(claim *corev1.PersistentVolumeClaim) (binding.Summary, error) {
	return v.index.Summary(claim, v.terms(claim))
}

func (v view) terms(claim *corev1.PersistentVolumeClaim) binding.Terms {
	return binding.Terms{Class: v.Class(storageclass.OfClaim(claim))}
}

// whyNotBound is the reason of the decision on the claim, and for one that may take any volume why none fits.
func (v view) whyNotBound(claim *corev1.PersistentVolumeClaim) string {
	explanation, err := binding.ExplainClaim(claim, v, binding.Rules{})
	if explanation.State == "" && err != nil {
		return err.Error()
	}
	return explanation.String()
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
		lines = append(lines, actor+": "+dump.OneLine(call.String()))
	}
	return lines
}
