package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// world is a cluster as the input has it.
type world struct {
	*dump.View
	progress *progress
	storages map[string][]string // by what they are, the volumes that stand for them; filled when asked for
	foreign  int                 // volumes whose claim is in a namespace that the input says nothing of
	pods     bool                // there is any
}

func newWorld(objects []binding.Object, watched *progress) *world {
	w := &world{progress: watched}
	for i, object := range objects {
		bindingtest.SetDefaults(object)
		if object.GetUID() == "" { // a manifest: what would become of it once it is created
			object.SetUID(types.UID(fmt.Sprintf("of-%d", i)))
		}
		_, isPod := object.(*corev1.Pod)
		w.pods = w.pods || isPod
	}
	w.View = dump.NewView(objects)
	for _, volume := range w.Volumes {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
			if _, evidence := w.Claim(ref.Namespace, ref.Name); evidence == binding.Unknown {
				w.foreign++
			}
		}
	}
	return w
}

// doubts are what may be wrong with the answers, for something may be missing from the input.
func (w *world) doubts() []string {
	var doubts []string
	if len(w.Volumes) == 0 {
		doubts = append(doubts, "there are no volumes in the input: was it asked for pv?")
	}
	if len(w.Claims) == 0 {
		doubts = append(doubts, "there are no claims in the input: was it asked for pvc?")
	}
	if w.foreign > 0 && len(w.Claims) > 0 {
		doubts = append(doubts, fmt.Sprintf("%d volumes have claims in namespaces that the input has no claim of, and are passed over: was it asked for with -A?", w.foreign))
	}
	if !w.pods {
		doubts = append(doubts, "there are no pods in the input: who uses a claim is not known")
	}
	return doubts
}
