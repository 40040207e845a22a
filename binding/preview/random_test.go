package preview_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/preview"
)

// TestRandomPreviews previews random deletions and edits in random clusters, then does them in earnest, with a storage
// that is really deleted and scrubbed, and finds what was foretold.
func TestRandomPreviews(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 50
	}
	effects := map[string]int{}
	for seed := range seeds {
		w := newRandomCluster(t, seed)
		w.compare(effects)
	}
	t.Log(effects)
	for _, effect := range []string{"Deleted", "Scrubbed", "Kept", "Stranded", "blocked", "Bound", "gone", "Released", "Available", "Failed", "awaited"} {
		require.NotZero(t, effects[effect], effect)
	}
}

type randomCluster struct {
	*rand.Rand
	t       *testing.T
	name    string
	cluster *testkit.Driven
	storage *bindingtest.Storage
}

func newRandomCluster(t *testing.T, seed uint64) *randomCluster {
	w := &randomCluster{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, name: fmt.Sprintf("seed %d", seed), storage: bindingtest.NewStorage()}
	set := w.storage.Hooks(ours, "hostPath")
	if w.IntN(3) == 0 {
		set.SourceDeleters = nil
	}
	var objects []obj.Object
	for i := range 6 {
		volume := bindingtest.Volume(fmt.Sprintf("pv-%d", i), fmt.Sprintf("%dGi", 1+w.IntN(3)), policy(w.policy()))
		if w.IntN(2) == 0 {
			provisionedBy([]string{ours, external, "kubernetes.io/aws-ebs"}[w.IntN(3)])(volume)
		}
		w.storage.Add(volume)
		objects = append(objects, volume)
		if w.IntN(4) == 0 {
			objects = append(objects, bindingtest.Attachment(volume.Name, "node"))
		}
	}
	for i := range 6 {
		name := fmt.Sprintf("data-%d", i)
		objects = append(objects, bindingtest.Claim("shop", name, fmt.Sprintf("%dGi", 1+w.IntN(3))))
		if w.IntN(4) == 0 {
			objects = append(objects, bindingtest.Pod("shop", "pod-"+name, []string{"", "node"}[w.IntN(2)], name))
		}
	}
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: set}
	w.cluster = testkit.NewDrivenWith(options, objects...)
	require.NoError(t, w.cluster.Settle(context.Background()))
	return w
}

func (w *randomCluster) policy() corev1.PersistentVolumeReclaimPolicy {
	return []corev1.PersistentVolumeReclaimPolicy{"Retain", "Delete", "Recycle"}[w.IntN(3)]
}

// changes returns some, for the preview and in earnest.
func (w *randomCluster) changes(objects []obj.Object) (foreseen []preview.Change, done []func() error) {
	ctx := context.Background()
	for _, object := range objects {
		volume, isVolume := object.(*corev1.PersistentVolume)
		key, _ := bindingtest.KeyOf(object)
		switch n := w.IntN(4); {
		case n == 0:
			foreseen = append(foreseen, preview.Delete(object))
			done = append(done, func() error { return w.cluster.Delete(ctx, key, metav1.DeleteOptions{}) })
		case n == 1 && isVolume:
			edited := volume.DeepCopy()
			edited.Spec.PersistentVolumeReclaimPolicy = w.policy()
			foreseen = append(foreseen, preview.Update(edited))
			done = append(done, func() error { _, err := w.cluster.UpdateVolume(ctx, edited); return err })
		}
	}
	return foreseen, done
}

func (w *randomCluster) compare(effects map[string]int) {
	objects := dump(w.t, w.cluster.Server)
	foreseen, done := w.changes(objects)
	rules := withHooks()
	if w.cluster.Controller.Hooks.SourceDeleters == nil {
		rules.Hooks.SourceDeleters = nil
	}
	outcome, err := preview.Of(w.t.Context(), preview.Cluster{Objects: objects, Options: rules}, foreseen...)
	require.NoError(w.t, err, w.name)
	require.True(w.t, outcome.Unsettled.Empty(), w.name)

	was := phases(objects)
	for _, do := range done {
		require.NoError(w.t, do(), w.name)
	}
	require.NoError(w.t, w.cluster.Settle(w.t.Context()), w.name)
	for _, change := range outcome.Phases {
		effects[change.After]++
		was[change.Object] = change.After
		if change.After == "gone" {
			delete(was, change.Object)
		}
	}
	require.Equal(w.t, phases(dump(w.t, w.cluster.Server)), was, "%s\n%s", w.name, outcome)
	w.compareStorage(outcome, effects)
}

// compareStorage compares what hooks were really asked for.
func (w *randomCluster) compareStorage(outcome preview.Outcome, effects map[string]int) {
	effects["blocked"] += len(outcome.Blocked)
	really := map[string]preview.StorageOutcome{}
	for _, call := range w.storage.Calls() {
		really[call.Volume] = map[bindingtest.StorageVerb]preview.StorageOutcome{
			bindingtest.StorageDelete: preview.Deleted, bindingtest.StorageRecycle: preview.Scrubbed,
		}[call.Verb]
	}
	foretold := map[string]preview.StorageOutcome{}
	for _, storage := range outcome.Storage {
		effects[string(storage.Outcome)]++
		if storage.Once != "" {
			effects["awaited"]++
			continue
		}
		if storage.By == ours || storage.By == "hostPath" {
			foretold[storage.Volume] = storage.Outcome
		}
	}
	for _, problem := range w.storage.Problems() {
		require.NotContains(w.t, problem, "attached", w.name)
	}
	require.Equal(w.t, really, foretold, "%s\n%s", w.name, outcome)
}
