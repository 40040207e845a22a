package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// repairRun is a cluster whose pair is repaired, by a person and a controller that both suffer faults.
type repairRun struct {
	t       *testing.T
	cluster *Driven
	person  *bindingtest.Client
	judge   *History
	ctx     context.Context
}

func newRepairRun(t *testing.T, objects ...obj.Object) *repairRun {
	cluster := NewDriven(objects...)
	w := &repairRun{t: t, cluster: cluster, person: cluster.NewClient("people"), ctx: context.Background()}
	w.judge = &History{Rand: rand.New(rand.NewPCG(1, 1)), Server: cluster.Server}
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		w.judge.judgeCalls("people") // what was done since was not the controller
		err := do()
		w.judge.judgeCalls("controller")
		return err
	})
	return w
}

func (w *repairRun) check() decision.PairReport {
	known := w.judge.snapshot()
	known.LiveReads = []obj.Key{obj.VolumeKey("a"), DataKey, obj.PodsKey("default")}
	report, err := decision.CheckPair(decision.PairRequest{Claim: w.cluster.Claim("default", "data"), Volume: w.cluster.Volume("a"), View: known,
		Options: decision.Options{Protection: decision.ProtectionOn}})
	require.NoError(w.t, err)
	return report
}

// settle lets the controller work. If it crashes, another takes its place.
func (w *repairRun) settle() {
	for range 10 {
		err := w.cluster.Settle(w.ctx)
		if !w.cluster.Client.Crashed() {
			require.NoError(w.t, err)
			return
		}
		w.cluster.Restart()
	}
	require.Fail(w.t, "X8: it does not settle")
}

// repair does what CheckPair says until nothing is wrong or nothing more can be done. Between what it says and what
// the person does of it, meanwhile happens once.
func (w *repairRun) repair(meanwhile func()) decision.PairReport {
	for range 10 {
		report := w.check()
		switch report.Repair.By {
		case decision.ByPerson:
			meanwhile()
			meanwhile = func() {}
			w.write(report.Repair.Action)
		case decision.ByController:
			w.settle()
		default:
			return report
		}
	}
	require.Fail(w.t, "the repair does not end")
	return decision.PairReport{}
}

// write may fail; then the pair is looked at anew. To what is to be created a person adds the storage.
func (w *repairRun) write(action decision.Action) {
	if action.Kind == decision.CreateVolume {
		OnHostPath(action.Volume)
		_, _ = w.person.Create(w.ctx, action.Volume)
		return
	}
	require.Equal(w.t, decision.UpdateVolume, action.Kind, "a person writes one object")
	require.NotEmpty(w.t, action.Volume.ResourceVersion, "B5")
	_, _ = w.person.Update(w.ctx, action.Volume)
}

// judgeEnd holds the settled state to the X rules, and a second pass to doing nothing (X8).
func (w *repairRun) judgeEnd() {
	w.settle()
	w.judge.JudgeEnd()
	require.Empty(w.t, w.judge.Broken)
	before := len(w.cluster.Calls())
	w.cluster.Resync()
	w.settle()
	for _, call := range w.cluster.CallsSince(before) {
		assert.False(w.t, call.Writes(), "X8: %s", call)
	}
}

// brokenPair is a pair that is not healthy, and how it may end.
type brokenPair struct {
	name    string
	objects func() []obj.Object
	ends    []string // violations that may be left; "": none
}

func brokenPairs() []brokenPair {
	of := func(objects ...obj.Object) func() []obj.Object {
		return func() []obj.Object {
			var fresh []obj.Object
			for _, object := range objects {
				fresh = append(fresh, asServed(object.DeepCopyObject().(obj.Object)))
			}
			return fresh
		}
	}
	guarded := []VolumeEdit{VolumeFinalizers(VolumeProtection)}
	ill := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append(guarded[:1:1], edits...)...)
	}
	well := func(edits ...VolumeEdit) *corev1.PersistentVolume { return ill(append(BoundVolume[:3:3], edits...)...) }
	mine := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return KnownClaim(append([]ClaimEdit{ClaimFinalizers(ClaimProtection)}, edits...)...)
	}
	healthy, either := []string{""}, []string{"", "UIDDiffers"}
	return []brokenPair{
		{"C11 claimRef dropped", of(mine(BoundTo("a")), ill(InPhase(corev1.VolumeBound))), healthy},
		{"C11 M2 claimRef dropped, and two claims are bound", of(mine(BoundTo("a")), ill(InPhase(corev1.VolumeBound)), KnownClaim(Named("other"), BoundTo("a"))), healthy},
		{"C11 Lost though it is there", of(mine(BoundTo("a"), Lost), well()), healthy},
		{"C8 bind-completed removed", of(mine(BoundTo("a"), WithoutNote(Completed)), well()), healthy},
		{"L4 restored, Bound", of(mine(BoundTo("a")), ill(RefersToStale, InPhase(corev1.VolumeBound))), healthy},
		{"L4 restored, Released, Lost", of(mine(BoundTo("a"), Lost), ill(RefersToStale, InPhase(corev1.VolumeReleased))), healthy},
		{"L4 restored, Available, never bound", of(mine(Naming("a")), ill(RefersToStale)), healthy},
		{"L4 restored, Delete: in time or not", of(mine(BoundTo("a")), ill(RefersToStale, DeletedPolicy, InPhase(corev1.VolumeBound))), either},
		{"C11 UID cleared", of(mine(BoundTo("a")), ill(PreBound, InPhase(corev1.VolumeBound))), healthy},
		{"V2 held, of another mode", of(mine(), well(BlockMode)), []string{"Unrelated"}},
		{"V2 held, of another mode, and another fits", of(mine(), well(BlockMode), KnownVolume("b", func(v *corev1.PersistentVolume) { v.UID = "uid-b" })), []string{"Unrelated", ""}},
		{"V4 held by a claim that has another", of(mine(BoundTo("b")), well(), KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound), func(v *corev1.PersistentVolume) { v.UID = "uid-b" })), healthy},
		{"C8 reserved and named", of(mine(Naming("a")), ill(PreBound)), healthy},
		{"V3 its claim is gone", of(well()), healthy},
		{"F2 F3 being deleted, both", of(mine(BoundTo("a"), ClaimBeingDeleted), well(BeingDeleted)), healthy},
		{"C10 another has it", of(mine(BoundTo("a")), ill(RefersToOther, InPhase(corev1.VolumeBound)), KnownClaim(Named("other"), BoundTo("a"))), []string{"VolumeTaken"}},
		{"C10 the volume is gone", of(mine(BoundTo("a"))), healthy},
		{"C10 the volume is gone, and a copy has another name", of(mine(BoundTo("a"), Lost), KnownVolume("copy", BoundToClaim, VolumeNote(ProvisionedBy, "csi.example.com"), DeletedPolicy)), healthy},
		{"C6 the volume never was", of(mine(Naming("a"))), healthy},
	}
}

// asServed has what a server fills in, or does not let change (A4, A6).
func asServed(object obj.Object) obj.Object {
	bindingtest.SetDefaults(object)
	if volume, ok := object.(*corev1.PersistentVolume); ok {
		OnHostPath(volume)
	}
	return object
}

// TestPairsHeal: every repair ends with a healthy pair, or says what is left: whoever comes first, whatever fails, and wherever the
// controller crashes.
func TestPairsHeal(t *testing.T) {
	t.Parallel()
	orders := map[string]func(w *repairRun) decision.PairReport{
		"the person first":     func(w *repairRun) decision.PairReport { return w.repair(func() {}) },
		"the controller first": func(w *repairRun) decision.PairReport { w.settle(); return w.repair(func() {}) },
		"both at once":         func(w *repairRun) decision.PairReport { return w.repair(w.settle) },
	}
	faults := map[string]func() bindingtest.Hook{
		"nothing fails":          func() bindingtest.Hook { return bindingtest.Fail(0, bindingtest.AnyWrite, nil) },
		"a write fails":          func() bindingtest.Hook { return bindingtest.Fail(1, bindingtest.AnyWrite, ErrConnection) },
		"a write conflicts":      func() bindingtest.Hook { return bindingtest.Conflict(1, bindingtest.AnyWrite) },
		"its answer is lost":     func() bindingtest.Hook { return bindingtest.LoseAnswer(1, bindingtest.AnyWrite) },
		"the next one conflicts": func() bindingtest.Hook { return bindingtest.Conflict(2, bindingtest.AnyWrite) },
	}
	crashes := 5
	if testing.Short() {
		crashes = 1
	}
	for _, ill := range brokenPairs() {
		for order, treat := range orders {
			for fault, hook := range faults {
				for crash := range crashes {
					t.Run(fmt.Sprintf("%s/%s/%s/crash after %d", ill.name, order, fault, crash), func(t *testing.T) {
						w := newRepairRun(t, ill.objects()...)
						w.person.Use(hook())
						w.cluster.Client.Use(hook())
						if crash > 0 {
							w.cluster.Client.CrashAfter(crash)
						}
						report := treat(w)
						w.cluster.Client.Restart() // a crash that did not come is called off
						w.judgeEnd()
						end := w.check()
						assert.Equal(t, report.Violations, end.Violations, "what was left is left")
						left := ""
						if !end.Healthy() {
							left = string(end.Violations[0].Kind)
							assert.Equal(t, decision.ByNobody, end.Repair.By, "%s", end.Repair.Action)
						}
						assert.Contains(t, ill.ends, left)
					})
				}
			}
		}
	}
}

// TestPairsHalfBoundAfterACrash: a crash after each of the four writes leaves a half-bound pair, which the Controller mends (B5).
func TestPairsHalfBoundAfterACrash(t *testing.T) {
	for crash, want := range map[int]string{1: "not yet set: the volume's phase, the claim's volumeName, the claim's status",
		2: "not yet set: the claim's volumeName, the claim's status", 3: "not yet set: the claim's status", 4: ""} {
		t.Run(fmt.Sprintf("B%d was the last", crash), func(t *testing.T) {
			w := newRepairRun(t, asServed(KnownClaim(ClaimFinalizers(ClaimProtection))), asServed(KnownVolume("a", VolumeFinalizers(VolumeProtection))))
			w.cluster.Client.CrashAfter(crash)
			_ = w.cluster.Settle(w.ctx)
			report := w.check()
			if want == "" {
				assert.Empty(t, report.Violations)
			} else {
				require.Len(t, report.Violations, 1)
				assert.Equal(t, decision.Violation{Kind: decision.PairHalfBound, Expected: "both sides bound", Actual: want}, report.Violations[0])
				assert.Equal(t, decision.ByController, report.Repair.By)
			}
			w.cluster.Restart()
			assert.Empty(t, w.repair(func() {}).Violations)
			w.judgeEnd()
		})
	}
}
