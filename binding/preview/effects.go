package preview

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// effects compares what was written with what it was before.
func (w *world) effects() Effects {
	e := Effects{Phases: []PhaseChange{}, Storage: []StorageFate{}, Blocked: []Blocked{}}
	keys := slices.SortedFunc(maps.Keys(w.touched), func(a, b obj.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys {
		before, after := w.touched[key], w.now(key)
		if was, is := phaseOf(before, "none"), phaseOf(after, "gone"); was != is && hasPhase(key) {
			e.Phases = append(e.Phases, PhaseChange{key.String(), was, is})
		}
		if blocked, ok := w.blocked(key, before, after); ok {
			e.Blocked = append(e.Blocked, blocked)
		}
	}
	e.Storage = append(e.Storage, w.fates(keys)...)
	return e
}

// now is the object as it stands; nil if it does not exist.
func (w *world) now(key obj.Key) obj.Object {
	object, err := w.server.Get(context.Background(), key)
	if err != nil {
		return nil
	}
	return object
}

func hasPhase(key obj.Key) bool {
	return key.Kind == obj.KindVolume || key.Kind == obj.KindClaim
}

// phaseOf is the phase of a volume or claim, or the given word if there is none; "" for other kinds.
func phaseOf(object obj.Object, none string) string {
	switch o := object.(type) {
	case nil:
		return none
	case *corev1.PersistentVolume:
		return string(o.Status.Phase)
	case *corev1.PersistentVolumeClaim:
		return string(o.Status.Phase)
	}
	return ""
}
