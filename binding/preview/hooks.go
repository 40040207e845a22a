package preview

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
)

// ran is the call of a hook.
type ran struct {
	volume *corev1.PersistentVolume
	fate   Fate
	by     string
}

// recorder stands for the hook of that name: it does nothing, and notes that.
type recorder struct {
	*world
	name string
}

func (r recorder) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	r.ran = append(r.ran, ran{volume, Deleted, r.name})
	return nil
}

func (r recorder) Recycle(_ context.Context, volume *corev1.PersistentVolume) error {
	r.ran = append(r.ran, ran{volume, Scrubbed, r.name})
	return nil
}

// hooks has a recorder for each name in the rules.
func (w *world) hooks() binding.Hooks {
	hooks := binding.Hooks{Recyclers: map[string]binding.Recycler{}}
	hooks.Deleters, hooks.SourceDeleters = w.deleters(w.rules.Hooks.Deleters), w.deleters(w.rules.Hooks.SourceDeleters)
	for name := range w.rules.Hooks.Recyclers {
		hooks.Recyclers[name] = recorder{w, name}
	}
	return hooks
}

func (w *world) deleters(names sets.Set[string]) map[string]binding.Deleter {
	deleters := map[string]binding.Deleter{}
	for name := range names {
		deleters[name] = recorder{w, name}
	}
	return deleters
}
