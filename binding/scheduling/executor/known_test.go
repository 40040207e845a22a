package executor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

func diskAt(version string) *corev1.PersistentVolume {
	return FitVolume("disk", func(v *corev1.PersistentVolume) { v.UID, v.ResourceVersion = "uid", version })
}

// knows checks which version of the volume is known; "" if none is.
func knows(t *testing.T, e *executor.Executor, version, why string) {
	t.Helper()
	volume, source := e.Volume("disk")
	if version == "" {
		assert.Equal(t, decision.NotInCache, source, why)
		return
	}
	require.Equal(t, decision.FromCache, source, why)
	assert.Equal(t, version, volume.ResourceVersion, why)
}

func TestWhatIsKnown(t *testing.T) {
	var e executor.Executor
	knows(t, &e, "", "nothing yet")
	e.Observe(diskAt("90"))
	e.Observe(diskAt("80"))
	knows(t, &e, "90", "X5 a watch may be behind")
	e.Update(diskAt("90"), diskAt("95"))
	knows(t, &e, "95", "")
	e.Update(diskAt("95"), diskAt("70"))
	knows(t, &e, "70", "W8 an update to an older version is what the server has now")
	successor := diskAt("100")
	successor.UID = "other"
	e.Update(diskAt("70"), successor)
	knows(t, &e, "100", "one of the same name")
	e.ObserveDeleted(diskAt("99"))
	knows(t, &e, "100", "the end of the first comes late")
	e.ObserveDeleted(successor)
	knows(t, &e, "", "")
	e.Observe(&corev1.Node{})
	e.Update(&corev1.Node{}, &corev1.Node{})
	e.ObserveDeleted(&corev1.Node{})
}

// What an informer has stored counts before it is reported, and what was deleted meanwhile does not come back.
func TestWhatIsStored(t *testing.T) {
	var e executor.Executor
	stored := diskAt("10")
	store := func() obj.Object { return stored }
	e.ObserveStored(stored, store)
	knows(t, &e, "10", "stored and not reported")
	listed := stored
	stored = diskAt("20")
	e.ObserveStored(listed, store)
	e.ObserveStored(stored, store)
	e.Update(listed, stored)
	knows(t, &e, "20", "reported late")
	successor := diskAt("25")
	successor.UID = "other"
	e.ObserveStored(successor, func() obj.Object { return successor })
	e.Update(diskAt("20"), diskAt("21"))
	e.Observe(diskAt("22"))
	e.ObserveDeleted(diskAt("23"))
	knows(t, &e, "25", "what is reported of its predecessor comes late")
	e.ObserveStored(stored, store)
	knows(t, &e, "25", "a store with an older object")
	e.ObserveDeleted(successor)
	e.ObserveStored(stored, func() obj.Object { return nil })
	knows(t, &e, "", "it was deleted after it was listed")
	e.ObserveStored(diskAt("30"), store)
	knows(t, &e, "30", "a store with an older version")
	e.ObserveStored(nil, nil)
}

// W8, X5: what replies have shown, and no informer yet, counts at once, and is forgotten when the server goes back. A reply that
// comes later than that notice is not believed.
func TestW8RepliesOfAServerThatWentBack(t *testing.T) {
	inWorld(t, twoDisks(), func(w *world) {
		preBound := func(want bool, why string) {
			w.Helper()
			volume, _ := w.executor.Volume("d1")
			require.Equal(w, want, volume.Spec.ClaimRef != nil, why)
		}
		before := w.Volume("d1")
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "deadline")
		preBound(true, "X5 the reply counts at once")
		w.executor.Observe(before)
		preBound(true, "though an older version is reported after it")
		w.executor.ServerWentBack()
		preBound(false, "the write is lost")
	})
	inWorld(t, twoDisks(), func(w *world) {
		c := w.begin("web", "n1")
		w.executor.ServerWentBack()
		c.waits()
		_, reads := w.writes()
		assert.Equal(w, 1, reads, "it writes again at once, and finds that the server has it")
	})
	inWorld(t, twoDisks(), func(w *world) {
		w.client.Use(func(call *bindingtest.Call, do func() error) error {
			err := do()
			if call.Verb == bindingtest.VerbUpdate {
				w.executor.ServerWentBack()
			}
			return err
		})
		w.carryOut(w.Context(), w.assume("web", "n1")).waits()
		_, reads := w.writes()
		assert.Equal(w, 1, reads, "a reply that comes late is not believed, but a read after that is")
	})
}

// S8: what was reserved for a pod was the volume that is gone, and not its successor of the same name.
func TestASuccessorIsNotReserved(t *testing.T) {
	inWorld(t, twoDisks(), func(w *world) {
		assumption := w.assume("web", "n1")
		d1 := w.Volume("d1")
		successor := d1.DeepCopy()
		successor.UID, successor.ResourceVersion = "successor", "1000"
		w.executor.Update(d1, successor)
		assert.True(w, w.plan("second", "n1").Fits())
		w.carryOut(w.Context(), assumption).fails(executor.PlanAnew, "d1")
	})
}

// W8: what the server has takes the place of all that is known, of whatever version.
func TestW8ResetTakesThePlaceOfAllThatIsKnown(t *testing.T) {
	volume := func(name, uid, version string) *corev1.PersistentVolume {
		return bindingtest.Volume(name, "10Gi", func(v *corev1.PersistentVolume) {
			v.UID, v.ResourceVersion = types.UID(uid), version
		})
	}
	e := &executor.Executor{}
	for _, known := range []obj.Object{volume("older", "1", "100"), volume("lost", "2", "101"), volume("another", "3", "102")} {
		e.Observe(known)
	}
	e.Reset([]obj.Object{volume("older", "1", "50"), volume("another", "4", "51"), volume("new", "5", "52")})
	got := map[string]string{}
	for _, name := range []string{"older", "lost", "another", "new"} {
		if v, _ := e.Volume(name); v != nil {
			got[name] = string(v.UID) + " in " + v.ResourceVersion
		}
	}
	assert.Equal(t, map[string]string{"older": "1 in 50", "another": "4 in 51", "new": "5 in 52"}, got)
}
