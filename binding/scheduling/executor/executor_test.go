package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

var (
	onVolume = bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
	onClaim  = bindingtest.On(bindingtest.VerbUpdate, obj.KindClaim)
)

// twoDisks is a pod with a claim, and a volume for it on each of two nodes; another claim takes the same ones.
func twoDisks() []obj.Object {
	return []obj.Object{disk("d1", "10Gi", "n1"), disk("d2", "10Gi", "n2"), claim("data", "5Gi", local), pod("web", "data"),
		claim("other", "5Gi", local), pod("second", "other")}
}

// S8: two writes and no read, and the binder does the rest.
func TestCarryOut(t *testing.T) {
	objects := append(twoDisks(), claim("logs", "1Gi", made), pod("both", "data", "logs"))
	inWorld(t, objects, func(w *world) {
		c := w.begin("both", "n1")
		c.waits()
		w.report()
		c.waits()
		w.settle()
		c.bound()
		writes, reads := w.writes()
		assert.Equal(w, []int{2, 0}, []int{writes, reads})
		assert.Equal(w, "d1", w.Claim("default", "data").Spec.VolumeName)
		w.begin("both", "n1").bound()
		writes, _ = w.writes()
		assert.Equal(w, 2, writes, "nothing is written twice")
		assert.Equal(w, []string{"pvc/default/other: NoVolume"}, short(w.plan("second", "n1")), "what was assumed is written")
	})
}

func short(plan scheduling.Plan) (reasons []string) {
	for _, reason := range plan.Reasons {
		reasons = append(reasons, reason.Claim.String()+": "+string(reason.Cause))
	}
	return reasons
}

// S8: what was assumed is no other pod's while it is carried out, and is free when the plan has failed.
func TestWhatIsAssumed(t *testing.T) {
	for name, c := range map[string]struct {
		fault bindingtest.Hook
		free  bool
	}{
		"S8 rejected":           {bindingtest.Fail(1, onVolume, apierrors.NewForbidden(schema.GroupResource{}, "d1", errors.New("quota"))), true},
		"S8 the server is away": {bindingtest.Fail(1, bindingtest.AnyWrite, errors.New("connection refused")), true},
		"S8 B6 no proof that it is not stored": {func(call *bindingtest.Call, do func() error) error {
			if onVolume(call) {
				_ = do()
			}
			return errors.New("connection reset")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, twoDisks(), func(w *world) {
				w.client.Use(c.fault)
				assumption := w.assume("web", "n1")
				assert.Equal(w, []string{"pvc/default/other: NoVolume"}, short(w.plan("second", "n1")))
				w.carryOut(w.Context(), assumption).fails(executor.Failed, "pre-bind d1 to default/data: ")
				assert.Equal(w, c.free, w.plan("second", "n1").Fits())
				assumption.Revert()
			})
		})
	}
}

// S8 B6: the reply to a write is lost. A read shows that it was stored, and the plan goes on.
func TestLostReplies(t *testing.T) {
	for name, match := range map[string]bindingtest.Match{"S8 of the volume": onVolume, "S8 of the claim": onClaim} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, append(twoDisks(), claim("logs", "1Gi", made), pod("both", "data", "logs")), func(w *world) {
				w.client.Use(bindingtest.LoseAnswer(1, match))
				c := w.begin("both", "n1")
				c.waits()
				_, reads := w.writes()
				assert.Equal(w, 1, reads)
				assert.Equal(w, []string{"pvc/default/other: NoVolume"}, short(w.plan("second", "n1")), "the reply is in no informer yet")
				w.settle()
				c.bound()
			})
		})
	}
}

// S8 B6: the context ends while a write is on its way, which is stored. It is read all the same, so that no other pod is promised
// the volume; the next attempt goes on.
func TestTheContextEndsInAWrite(t *testing.T) {
	inWorld(t, twoDisks(), func(w *world) {
		ctx, cancel := context.WithCancelCause(w.Context())
		w.client.Use(func(call *bindingtest.Call, do func() error) error {
			err := do()
			if onVolume(call) {
				cancel(errors.New("the scheduler is stopping"))
				return context.Canceled
			}
			return err
		})
		w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "the scheduler is stopping")
		assert.Equal(w, []string{"pvc/default/other: NoVolume"}, short(w.plan("second", "n1")))
		w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "waiting for pvc/default/data")
		w.settle()
		w.begin("web", "n1").bound()
		writes, _ := w.writes()
		assert.Equal(w, 1, writes)
	})
}

// S8: the bind timeout.
func TestTheContextEnds(t *testing.T) {
	inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs")}, func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		err := w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "waiting for a volume for pvc/default/logs: context deadline exceeded")
		require.ErrorIs(w, err, context.DeadlineExceeded)
		w.report()
		assert.Equal(w, []string{"pvc/default/logs: ProvisionedElsewhere"}, short(w.plan("web", "n2")), "S4 what was written stays")
		w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "waiting for")
		writes, _ := w.writes()
		assert.Equal(w, 1, writes)
	})
	inWorld(t, twoDisks(), func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		w.carryOut(ctx, w.assume("web", "n1")).fails(executor.Failed, "pre-bind d1 to default/data: context canceled")
		assert.False(w, w.client.Crashed())
		writes, reads := w.writes()
		assert.Equal(w, []int{0, 0}, []int{writes, reads}, "nothing is begun")
	})
}

// S8: somebody changes what was planned with, before or after the scheduler hears of it.
func TestPlansThatAreOutdated(t *testing.T) {
	objects := append(twoDisks(), disk("e1", "20Gi", "n1"), claim("logs", "1Gi", made), pod("both", "data", "logs"))
	for name, c := range map[string]struct {
		meanwhile func(*world)
		outcome   executor.Outcome
		text      string
		next      string // of a plan that is made anew
	}{
		"S8 the volume was given to another": {func(w *world) {
			change(w, w.Volume("d1"), RefersTo("default", "other", w.Claim("default", "other").UID))
		}, executor.PlanAnew, "d1", "e1"},
		"S8 the volume was changed": {func(w *world) {
			change(w, w.Volume("d1"), func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"a": "b"} })
		}, executor.PlanAnew, "d1", "d1"},
		"S8 the volume was deleted": {func(w *world) { remove(w, obj.VolumeKey("d1")) }, executor.PlanAnew, "d1", "e1"},
		"S8 the volume was made anew": {func(w *world) {
			remove(w, obj.VolumeKey("d1"))
			_, err := w.Create(w.Context(), disk("d1", "10Gi", "n1"))
			require.NoError(w, err)
		}, executor.PlanAnew, "d1", "d1"},
		"S8 the claim was bound to another volume": {func(w *world) {
			change(w, w.Claim("default", "data"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "e1" })
		}, executor.PlanAnew, "e1", ""},
	} {
		for _, reported := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reported %t", name, reported), func(t *testing.T) {
				inWorld(t, objects, func(w *world) {
					assumption := w.assume("both", "n1")
					require.Equal(w, "d1", assumption.Plan().Bindings[0].Volume.Name)
					c.meanwhile(w)
					if reported {
						w.report()
					}
					carrying := w.carryOut(w.Context(), assumption)
					w.report()
					if !reported && strings.Contains(name, "the claim was") { // the volume is written by then, which the binder mends
						w.settle()
					}
					err := carrying.fails(c.outcome, c.text)
					assert.Contains(w, err.Error(), "something has changed since the plan was made: ")
					w.report()
					if plan := w.plan("both", "n1"); c.next != "" && assert.True(w, plan.Fits(), plan.Reasons) {
						assert.Equal(w, c.next, plan.Bindings[0].Volume.Name)
					}
				})
			})
		}
	}
}

// remove removes an object and its finalizers.
func remove(w *world, key obj.Key) {
	w.Helper()
	object, err := w.Get(w.Context(), key)
	require.NoError(w, err)
	if len(object.GetFinalizers()) > 0 {
		object.SetFinalizers(nil)
		_, err = w.Update(w.Context(), object)
		require.NoError(w, err)
	}
	require.NoError(w, w.Delete(w.Context(), key, metav1.DeleteOptions{}))
}

// S8: a volume is deleted, and no informer has shown it. One read is no proof, so it is waited for the informer, for a while: a
// plan that is made before that would take the volume again.
func TestADeletionThatNobodyReports(t *testing.T) {
	inWorld(t, twoDisks(), func(w *world) {
		assumption := w.assume("web", "n1")
		remove(w, obj.VolumeKey("d1"))
		began := time.Now()
		c := w.carryOut(w.Context(), assumption)
		c.waits()
		c.fails(executor.PlanAnew, `pre-bind d1 to default/data: persistentvolumes "d1" not found`)
		assert.Equal(w, 5*time.Second, time.Since(began))
		assert.True(w, w.plan("web", "n1").Fits(), "a reply does not make it forget the volume")
	})
	inWorld(t, twoDisks(), func(w *world) {
		assumption := w.assume("web", "n1")
		remove(w, obj.VolumeKey("d1"))
		began := time.Now()
		c := w.carryOut(w.Context(), assumption)
		c.waits()
		w.report()
		c.fails(executor.PlanAnew, "d1")
		assert.Zero(w, time.Since(began))
	})
}

// S8: the provisioner has failed, and the binder has taken the node off the claim.
func TestADeselectedClaim(t *testing.T) {
	inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs")}, func(w *world) {
		w.storage.Use(bindingtest.FailStorage(1, bindingtest.OnStorage(bindingtest.StorageProvision), errors.New("no space left")))
		c := w.begin("web", "n1")
		w.settle()
		err := c.fails(executor.ScheduleElsewhere, "Deselected")
		var failure *executor.Error
		require.ErrorAs(w, err, &failure)
		assert.Equal(w, scheduling.CauseDeselected, failure.Reasons[0].Cause)
		c = w.begin("web", "n2")
		w.settle()
		c.bound()
	})
}

// S8: a process has died after it selected the node, and the next one finds the claim so, and then without the node.
func TestADeselectedClaimOfThePredecessor(t *testing.T) {
	inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs")}, func(w *world) {
		w.begin("web", "n1")
		w.restart()
		c := w.begin("web", "n1")
		c.waits()
		change(w, w.Claim("default", "logs"), func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, SelectedNode) })
		w.report()
		c.fails(executor.ScheduleElsewhere, "Deselected")
	})
}

// S8: a claim that had no node yet was only changed, whether or not that was reported before the write.
func TestAClaimThatWasChanged(t *testing.T) {
	for _, reported := range []bool{true, false} {
		inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs")}, func(w *world) {
			assumption := w.assume("web", "n1")
			change(w, w.Claim("default", "logs"), func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
			if reported {
				w.report()
			}
			w.carryOut(w.Context(), assumption).fails(executor.PlanAnew, "something has changed since the plan was made: ")
			w.report()
			c := w.begin("web", "n1")
			w.settle()
			c.bound()
		})
	}
}

// S8: what cannot be mended on this node.
func TestPlansForAnotherNode(t *testing.T) {
	for name, meanwhile := range map[string]func(*world){
		"S8 ProvisionedElsewhere": func(w *world) { change(w, w.Claim("default", "logs"), ClaimNote(SelectedNode, "n2")) },
		"S8 ClaimAbsent":          func(w *world) { remove(w, obj.ClaimKey("default", "data")) },
		"S8 ClaimDeleting": func(w *world) {
			require.NoError(w, w.Delete(w.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
		},
		"S8 VolumeElsewhere": func(w *world) {
			_, err := w.Create(w.Context(), disk("elsewhere", "5Gi", "n2"))
			require.NoError(w, err)
			change(w, w.Claim("default", "logs"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "elsewhere" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, append(twoDisks(), claim("logs", "1Gi", made), pod("both", "data", "logs")), func(w *world) {
				assumption := w.assume("both", "n1")
				meanwhile(w)
				w.report()
				_, cause, _ := strings.Cut(name, " ")
				w.carryOut(w.Context(), assumption).fails(executor.ScheduleElsewhere, cause)
			})
		})
	}
}

// S8: the pod is deleted while its claims are being bound, or was before.
func TestAPodThatGoes(t *testing.T) {
	inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs"), pod("early", "logs")}, func(w *world) {
		assumption := w.assume("early", "n1")
		remove(w, bindingtest.PodKey("default", "early"))
		w.report()
		require.ErrorIs(w, w.carryOut(w.Context(), assumption).fails(executor.Failed, "the pod does not exist any more"), executor.ErrPodGone)
		c := w.begin("web", "n1")
		w.report()
		c.waits()
		remove(w, bindingtest.PodKey("default", "web"))
		_, err := w.Create(w.Context(), pod("web", "logs"))
		require.NoError(w, err)
		c.waits()
		w.report()
		require.ErrorIs(w, c.fails(executor.Failed, "the pod does not exist any more"), executor.ErrPodGone)
		assert.True(w, w.plan("web", "n1").Fits(), "its successor goes on")
	})
}

// S8: the claim is bound before anybody has shown the scheduler its volume, which may be one that the pod cannot use.
func TestAVolumeThatIsReportedLate(t *testing.T) {
	inWorld(t, []obj.Object{claim("logs", "1Gi", made), pod("web", "logs")}, func(w *world) {
		c := w.begin("web", "n1")
		require.NoError(w, w.Settle(w.Context()))
		w.reportOnly(obj.KindClaim)
		c.waits()
		w.reportOnly(obj.KindVolume)
		c.bound()
	})
}

// S8, property 6: a write is rejected, and a proxy answers the read in the server's place. That proves nothing.
func TestAReadThatAProxyAnswers(t *testing.T) {
	for name, answer := range map[string]bindingtest.Hook{
		"S8 with an empty object": bindingtest.Answer(1, bindingtest.On(bindingtest.VerbGet, obj.KindVolume), &corev1.PersistentVolume{}),
		"S8 with 404": bindingtest.Fail(1, bindingtest.On(bindingtest.VerbGet, obj.KindVolume),
			apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "persistentvolumes"}, "d1", "no route", 0, true)),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, twoDisks(), func(w *world) {
				began := time.Now()
				w.client.Use(bindingtest.Fail(1, onVolume, errors.New("connection reset")), answer)
				w.begin("web", "n1").fails(executor.Failed, "pre-bind d1 to default/data: connection reset")
				assert.Zero(w, time.Since(began))
			})
		})
	}
}

// S8: a mutating webhook undoes a write, which the server answers as done. To repeat it would not help, and would never end.
func TestAWebhookUndoesAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(obj.Object)
		text string
	}{
		"S8 of the volume": {func(o obj.Object) { o.(*corev1.PersistentVolume).Spec.ClaimRef = nil }, "pre-bind d1 to default/data: "},
		"S8 of the claim":  {func(o obj.Object) { o.SetAnnotations(nil) }, "provision its volume for node n1: "},
		"S8 of the volume, and changes it": {func(o obj.Object) {
			o.(*corev1.PersistentVolume).Spec.ClaimRef = nil
			o.SetLabels(map[string]string{"seen": "yes"})
		}, "pre-bind d1 to default/data: "},
		"S8 of the claim, and changes it": {func(o obj.Object) { o.SetAnnotations(map[string]string{"seen": "yes"}) }, "provision its volume for node n1: "},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, append(twoDisks(), claim("logs", "1Gi", made), pod("one", "logs")), func(w *world) {
				calls, web := 0, "web"
				onSent := onVolume
				if strings.HasPrefix(c.text, "provision") {
					onSent, web = onClaim, "one"
				}
				w.client.Use(func(call *bindingtest.Call, do func() error) error {
					if onSent(call) && calls < 3 {
						calls++
						c.edit(call.Sent)
					}
					return do()
				})
				err := w.begin(web, "n1").fails(executor.Failed, c.text+"the server accepted the write and did not store it")
				require.ErrorIs(w, err, executor.ErrNotStored)
				assert.Equal(w, 1, calls)
				w.report()
				assert.True(w, w.plan(web, "n2").Fits(), "nothing is assumed any more")
			})
		})
	}
}

// S8: two pods share a claim, and both carry out what was assumed for it.
func TestPodsThatShareAClaim(t *testing.T) {
	inWorld(t, append(twoDisks(), claim("logs", "1Gi", made), pod("one", "data", "logs"), pod("two", "data", "logs")), func(w *world) {
		one, two := w.assume("one", "n1"), w.assume("two", "n1")
		first, second := w.carryOut(w.Context(), one), w.carryOut(w.Context(), two)
		w.settle()
		first.bound()
		second.bound()
		writes, _ := w.writes()
		assert.Equal(w, 2, writes)
	})
}

// S8, W2: a change wakes the plans that depend on it, and no others.
func TestAChangeWakesWhatDependsOnIt(t *testing.T) {
	const many = 50
	objects := []obj.Object{}
	for i := range many {
		objects = append(objects, claim(fmt.Sprint("c", i), "1Gi", made), pod(fmt.Sprint("p", i), fmt.Sprint("c", i)))
	}
	inWorld(t, objects, func(w *world) {
		var looked atomic.Int32
		gone := w.executor.PodGone
		w.executor.PodGone = func(ctx context.Context, pod obj.Key, uid types.UID) bool {
			looked.Add(1)
			return gone(ctx, pod, uid)
		}
		var all []carrying
		for i := range many {
			all = append(all, w.begin(fmt.Sprint("p", i), "n1"))
		}
		w.settle()
		for _, c := range all {
			c.bound()
		}
		assert.LessOrEqual(w, int(looked.Load()), many*12)
	})
}

// S8: whatever fails, once or for ever after, and wherever the process dies: the scheduler that tries again ends with a pod whose
// claims are bound to volumes of its node, and nothing stays reserved.
func TestEveryFaultInEveryCall(t *testing.T) {
	faults := map[string]func(int) bindingtest.Hook{
		"fails":    func(n int) bindingtest.Hook { return bindingtest.Fail(n, fromTheStart, errors.New("timeout")) },
		"conflict": func(n int) bindingtest.Hook { return bindingtest.Conflict(n, fromTheStart) },
		"lost":     func(n int) bindingtest.Hook { return bindingtest.LoseAnswer(n, fromTheStart) },
		"another's reply": func(n int) bindingtest.Hook {
			return bindingtest.Answer(n, fromTheStart, &corev1.PersistentVolume{})
		},
	}
	objects := append(twoDisks(), claim("logs", "1Gi", made), pod("both", "data", "logs"))
	for name, fault := range faults {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("S8 %s %d", name, n), func(t *testing.T) {
				inWorld(t, objects, func(w *world) {
					w.client.Use(fault(n), fault(n+1))
					w.untilBound()
				})
			})
		}
	}
	dies := [][]string{nil, {"pvc/default/data: PreBoundElsewhere"}, {"pvc/default/logs: ProvisionedElsewhere"}}
	for n := range dies {
		t.Run(fmt.Sprintf("S8 dies after %d writes", n), func(t *testing.T) {
			inWorld(t, objects, func(w *world) {
				w.client.CrashAfter(n)
				assumption := w.assume("both", "n1")
				c := w.carryOut(w.Context(), assumption)
				if n < 2 {
					c.fails(executor.Failed, "")
				}
				w.restart()
				assert.Equal(w, dies[n], short(w.plan("both", "n2")), "M13, S4: what was written stays")
				w.untilBound()
			})
		})
	}
}

// fromTheStart matches all calls of a scheduler.
func fromTheStart(call *bindingtest.Call) bool {
	return call.Verb == bindingtest.VerbUpdate || call.Verb == bindingtest.VerbGet
}

// untilBound does what a scheduler does, again and again.
func (w *world) untilBound() {
	w.Helper()
	for range 6 {
		c := w.begin("both", "n1")
		w.settle()
		synctest.Wait()
		if err := <-c.ended; err == nil {
			assert.Equal(w, "d1", w.Claim("default", "data").Spec.VolumeName)
			assert.True(w, w.plan("second", "n2").Fits(), "nothing stays reserved")
			return
		}
	}
	require.Fail(w, "it is never bound")
}

// bind begins to bind a pod on node n1.
func (w *world) bind(assumption *scheduling.Assumption) carrying {
	c := carrying{w, make(chan error, 1)}
	stored, err := w.Get(w.Context(), bindingtest.PodKey("default", "web"))
	require.NoError(w, err)
	go func() {
		c.ended <- w.executor.BindVolumes(w.Context(), w.executor.Request(stored.(*corev1.Pod), w.view()), hostNode("n1"), assumption)
	}()
	synctest.Wait()
	return c
}

// S8: a pod whose plan is outdated is planned anew for the same node, a few times.
func TestBindVolumes(t *testing.T) {
	objects := append(twoDisks(), disk("e1", "20Gi", "n1"))
	give := func(w *world, volume string) {
		change(w, w.Volume(volume), RefersTo("default", "other", w.Claim("default", "other").UID))
	}
	for name, c := range map[string]struct {
		meanwhile func(*world)
		volume    string
		outcome   executor.Outcome
		text      string
	}{
		"S8 at once":      {func(*world) {}, "d1", "", ""},
		"S8 another fits": {func(w *world) { give(w, "d1") }, "e1", "", ""},
		"S8 no other fits": {func(w *world) {
			give(w, "d1")
			remove(w, obj.VolumeKey("e1"))
		}, "", executor.ScheduleElsewhere, "pvc/default/data: NoVolume: "},
		"S8 the claim is gone": {func(w *world) {
			give(w, "d1")
			remove(w, obj.ClaimKey("default", "data"))
		}, "", executor.ScheduleElsewhere, "default/data"},
		"S8 nothing but conflicts": {func(w *world) {
			for range 5 {
				w.client.Use(bindingtest.Conflict(1, onVolume)) // each sees what those before it let pass
			}
		}, "", executor.PlanAnew, "something has changed since the plan was made: pre-bind d1 to default/data: "},
		"S8 four conflicts": {func(w *world) {
			for range 4 {
				w.client.Use(bindingtest.Conflict(1, onVolume)) // each sees what those before it let pass
			}
		}, "d1", "", ""},
	} {
		for _, reserved := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reserved %t", name, reserved), func(t *testing.T) {
				inWorld(t, objects, func(w *world) {
					var assumption *scheduling.Assumption
					if reserved {
						assumption = w.assume("web", "n1")
					}
					c.meanwhile(w)
					w.report()
					carrying := w.bind(assumption)
					if c.outcome != "" {
						carrying.fails(c.outcome, c.text)
						return
					}
					w.settle()
					carrying.bound()
					assert.Equal(w, c.volume, w.Claim("default", "data").Spec.VolumeName)
				})
			})
		}
	}
}

func TestErrors(t *testing.T) {
	assert.Empty(t, executor.OutcomeOf(nil))
	assert.Equal(t, executor.Failed, executor.OutcomeOf(errors.New("somebody else's")))
	inner := &executor.Error{Outcome: executor.PlanAnew, Err: executor.ErrPodGone}
	assert.Equal(t, executor.PlanAnew, executor.OutcomeOf(fmt.Errorf("binding: %w", inner)))
	assert.ErrorIs(t, inner, executor.ErrPodGone)
	long := &executor.Error{Outcome: executor.ScheduleElsewhere}
	for range 10 {
		long.Reasons = append(long.Reasons, scheduling.Reason{Cause: scheduling.CauseNoVolume, Claim: obj.ClaimKey("default", "data"), Detail: strings.Repeat("long\n", 100)})
	}
	assert.LessOrEqual(t, len(long.Error()), 1000)
	assert.NotContains(t, long.Error(), "\n")
}
