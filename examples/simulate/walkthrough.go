package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

//go:embed walkthrough.yaml
var walkthrough string

// stage is one thing that people do in the walkthrough, and its outcome.
type stage struct {
	done string
	then string
	do   func(ctx context.Context, s *simulation) error
}

// stages tell a volume's life with the objects of walkthrough.yaml.
func stages(volume, claim, pod dump.Entry) []stage {
	creating := func(e dump.Entry) func(context.Context, *simulation) error {
		return func(ctx context.Context, s *simulation) error {
			if err := s.create(ctx, e); err != nil {
				return err
			}
			return s.settle(ctx)
		}
	}
	deleting := func(t target) func(context.Context, *simulation) error {
		return func(ctx context.Context, s *simulation) error { return s.delete(ctx, t) }
	}
	data := target{kind: "pvc", namespace: dump.DefaultNamespace, name: claim.Object.GetName()}
	web := target{kind: "pod", namespace: dump.DefaultNamespace, name: pod.Object.GetName()}
	return []stage{
		{"An administrator creates a volume.", "It is Available: nobody has claimed it.", creating(volume)},
		{"A user creates a claim.", "It is bound to the volume in four writes: two on the volume, two on the claim.", creating(claim)},
		{"A pod that uses the claim runs on a node.", "Nothing needs to be written.", creating(pod)},
		{"The user deletes the claim while the pod uses it.", "A finalizer keeps it: it is Terminating, and its volume stays Bound.", deleting(data)},
		{"The user deletes the pod, which takes its time to end.", "Nobody uses the claim any more: it goes, and its volume is Released. " +
			"The policy is Retain: the data stays, and so does the reference to the claim that is gone.", deleting(web)},
		{"The user creates a claim of the same name.", "It is another claim, so it does not inherit the data: it waits.", creating(claim)},
	}
}

// walk runs the walkthrough. As a table it tells every stage and ends with the tables.
func walk(ctx context.Context, o options, out, notes io.Writer) error {
	in, err := dump.Read([]string{"-"}, strings.NewReader(walkthrough), nil)
	if err != nil {
		return fmt.Errorf("walkthrough: %w", err)
	}
	s, err := start(ctx, nil)
	if err != nil {
		return err
	}
	story := io.Discard
	if o.format == formatTable {
		story = out
	}
	var mounts []string
	for i, stage := range stages(in.Entries[0], in.Entries[1], in.Entries[2]) {
		callsBefore, mountsBefore := len(s.server.Calls()), mounts
		if err := stage.do(ctx, s); err != nil {
			return err
		}
		if mounts, err = s.mounts(ctx); err != nil {
			return err
		}
		fmt.Fprintf(story, "%d. %s\n", i+1, stage.done)
		for _, line := range s.trace(callsBefore) {
			fmt.Fprintln(story, "     "+line)
		}
		if !slices.Equal(mounts, mountsBefore) {
			for _, line := range mounts {
				fmt.Fprintln(story, "     "+line)
			}
		}
		fmt.Fprintf(story, "   %s\n\n", stage.then)
	}
	if o.trace && o.format != formatTable {
		writeTrace(o, s, out, notes)
	}
	return s.write(ctx, o, out, notes)
}

// mounts says of each pod on a node which of its volumes may be mounted.
func (s *simulation) mounts(ctx context.Context) ([]string, error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	var lines []string
	view := dump.NewView(objects)
	for _, pod := range onNodes(objects) {
		for _, v := range scheduling.VolumesOf(pod, view) {
			lines = append(lines, fmt.Sprintf("%s: volume %s: %s", podKey(pod), v.Name, mountLine(v)))
		}
	}
	return lines, nil
}
