package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// result is what a simulation leaves behind.
type result struct {
	*dump.View
	placed  []placedPod
	waiting []waitingPod
	events  []binding.Event
}

// reason is why a claim is not Bound, in one line.
type reason struct {
	claim *corev1.PersistentVolumeClaim
	text  string
}

func (s *simulation) result(ctx context.Context) (result, error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return result{}, err
	}
	return result{dump.NewView(objects), s.pods.left(objects), s.pods.waiting, s.server.Events()}, nil
}

// reasons has one for each claim that is not Bound.
func (r result) reasons() []reason {
	var reasons []reason
	for _, claim := range r.Claims {
		if claim.Status.Phase != corev1.ClaimBound {
			reasons = append(reasons, reason{claim, whyNotBound(claim, r)})
		}
	}
	return reasons
}

// whyNotBound is the reason of the decision on the claim, and for one that may take any volume why none fits.
func whyNotBound(claim *corev1.PersistentVolumeClaim, view binding.View) string {
	explanation, err := binding.ExplainClaim(claim, view, binding.Rules{})
	if explanation.State == "" && err != nil {
		return err.Error()
	}
	return explanation.String()
}

// objects reads everything from the server.
func (s *simulation) objects(ctx context.Context) ([]obj.Object, error) {
	var all []obj.Object
	for _, kind := range bindingtest.Kinds() {
		objects, err := s.server.List(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
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
