package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

const (
	provisioner = "example.com/hostpath"
	namespace   = "default"
)

// hooks returns all that a controller needs of the directories.
func (d directories) hooks() hooks.Set {
	return hooks.Set{
		Provisioners:   map[string]hooks.Provisioner{provisioner: d},
		Deleters:       map[string]hooks.Deleter{provisioner: d},
		SourceDeleters: map[string]hooks.Deleter{"hostPath": d}, // of volumes that a person made
		Recyclers:      map[string]hooks.Recycler{"hostPath": d},
	}
}

// cluster is a server in memory and a controller on it.
type cluster struct {
	*bindingtest.Server
	*bindingtest.Driver
}

func newCluster(hookSet hooks.Set, objects ...obj.Object) *cluster {
	server := bindingtest.NewServer(objects...)
	return &cluster{Server: server, Driver: bindingtest.NewDriver(server, bindingtest.DriverOptions{Hooks: hookSet})}
}

// teller reports what happens on a cluster and below the root.
type teller struct {
	cluster *cluster
	dirs    directories
	out     io.Writer
	number  int // of the step
	told    int // calls of the server
}

// tell runs the whole story.
func tell(ctx context.Context, dirs directories, out io.Writer) error {
	t := &teller{cluster: newCluster(dirs.hooks()), dirs: dirs, out: out}
	for _, step := range t.steps() {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.done, err)
		}
		if err := t.cluster.Settle(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.done, err)
		}
		if err := t.report(step); err != nil {
			return err
		}
	}
	return nil
}

// report prints a step, every write and event that came of it, and what is below the root then.
func (t *teller) report(s step) error {
	t.number++
	fmt.Fprintf(t.out, "%d. %s\n", t.number, s.done)
	calls := t.cluster.CallsSince(t.told)
	t.told += len(calls)
	for _, call := range calls {
		if call.Writes() || call.Verb == bindingtest.VerbRecord {
			fmt.Fprintf(t.out, "     %s: %s\n", actor(call), call)
		}
	}
	below, err := listing(t.dirs.root)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "   %s\n   Below the root: %s\n\n", s.then, below)
	return err
}

func actor(call bindingtest.Call) string {
	if call.Actor == "" {
		return "user"
	}
	return call.Actor
}

// listing returns all that is below a directory, by its path from there.
func listing(root string) (string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			name += "/"
		}
		names = append(names, name)
		return nil
	})
	if len(names) == 0 {
		names = []string{"nothing"}
	}
	return strings.Join(names, " "), err
}
