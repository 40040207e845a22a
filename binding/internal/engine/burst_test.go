package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// burst lets n volumes arrive at once for n claims that wait, and counts the syncs until no key is left.
func burst(t *testing.T, n int, hookSet ...bindingtest.Hook) (syncs int, server *bindingtest.Server) {
	cluster := NewDriven()
	for i := range n {
		_, err := cluster.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), fmt.Sprintf("%dGi", 1+i%3)))
		require.NoError(t, err)
	}
	require.NoError(t, cluster.Settle(t.Context()))
	var queue []obj.Key
	queued := map[obj.Key]bool{}
	add := func(keys []obj.Key) {
		for _, key := range keys {
			if !queued[key] {
				queued[key] = true
				queue = append(queue, key)
			}
		}
	}
	for i := range n {
		volume, err := cluster.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", i), fmt.Sprintf("%dGi", 1+i%3)))
		require.NoError(t, err)
		add(cluster.Controller.Observe(volume))
	}
	cluster.Client.Use(hookSet...)
	for ; len(queue) > 0; queue = queue[1:] {
		syncs++
		delete(queued, queue[0])
		result, _ := cluster.Controller.Sync(t.Context(), queue[0])
		add(result.Next)
	}
	return syncs, cluster.Server
}

func TestW1ABurstOfVolumesCostsAsManySyncsAsItHasVolumes(t *testing.T) {
	few, _ := burst(t, 50)
	many, server := burst(t, 200)
	assert.LessOrEqual(t, many, 4*few+8, "W1: n binds, not n × n syncs")
	assert.Equal(t, 200, CountBound(t, server, 200))
}

func TestW1W6RefusedClaimsAreNotAskedByEveryVolume(t *testing.T) {
	refuse := func(call *bindingtest.Call, do func() error) error {
		if call.Writes() {
			return apierrors.NewForbidden(corev1.Resource("persistentvolumes"), call.Key.Name, nil)
		}
		return do()
	}
	few, _ := burst(t, 50, refuse)
	many, _ := burst(t, 200, refuse)
	assert.LessOrEqual(t, many, 4*few+8, "W6: each waits for its delay")
}

// panicky is a client with a defect.
type panicky struct{ binding.Client }

func (panicky) UpdateVolume(context.Context, *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	panic("a defect")
}

func TestB6AClientThatPanicsLeavesNothingHeld(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "c-000", "1Gi"))
	key := obj.ClaimKey("default", "c-000")
	controller := &binding.Controller{Client: panicky{cluster.Server}}
	controller.Observe(cluster.Volume("pv"))
	controller.Observe(cluster.Claim("default", "c-000"))

	_, err := controller.Sync(t.Context(), key)
	require.ErrorContains(t, err, "the Client panicked: a defect")

	controller.Client = cluster.Server
	_, err = controller.Sync(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, 1, CountBound(t, cluster.Server, 1), "the next sync goes on")
}

// panicsOnce is a recorder with a defect.
type panicsOnce struct{ panicked bool }

func (p *panicsOnce) Record(decision.Event) {
	if !p.panicked {
		p.panicked = true
		panic("a defect")
	}
}

func TestB6ARecorderThatPanicsLeavesNothingHeld(t *testing.T) {
	class := ClassOf("paths", "example.com/paths")
	class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	cluster := NewDriven(class, bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("paths"))))
	recorder := &panicsOnce{}
	controller := &binding.Controller{
		Client:   cluster.Server,
		Recorder: recorder,
		Hooks:    hooks.Set{Provisioners: map[string]hooks.Provisioner{"example.com/paths": Provisions(MakesPaths)}},
	}
	controller.Observe(class)
	controller.Observe(cluster.Claim("default", "data"))

	_, err := controller.Sync(t.Context(), DataKey)
	require.EqualError(t, err, "the Recorder panicked: a defect")
	assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase, "the sync goes on, in the middle of which it was")

	_, err = controller.Sync(t.Context(), DataKey)
	require.NoError(t, err)
}

func TestX5ObjectsWithoutAUIDLeaveNoTombstone(t *testing.T) {
	state := engine.New(Unprotected(decision.Options{}), 10)
	gone, other := At("1", KnownVolume("a")), At("2", KnownVolume("b"))
	gone.SetUID("")
	other.SetUID("")
	state.Observe(gone)
	state.ObserveDeleted(gone)
	assert.NotEmpty(t, state.Observe(other))
}

func TestX8AnEmptyCapacityIsNoCapacity(t *testing.T) {
	claim := KnownClaim()
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimPending, corev1.ResourceList{}
	action, err := decision.NextForClaim(claim, decision.Snapshot{}, Unprotected(decision.Options{}))
	require.NoError(t, err)
	assert.False(t, action.Writes(), "%s", action)
}

// X8, N: a conflict tells that the object has changed. One that has not, as a live read shows, is refused for another reason: it is told, and
// tried again as what is rejected.
func TestX8AConflictThatIsNoneIsARejection(t *testing.T) {
	for name, refused := range map[string]error{
		"a conflict, of a webhook": apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("another change is under way")),
		"a proxy without a route":  apierrors.NewGenericServerResponse(404, "put", corev1.Resource("persistentvolumes"), "a", "no route", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, KnownVolume("a"), KnownClaim())
			d.starts().says("B1 UpdateVolume pv/a").gets(nil, refused).says("B6 Read pv/a").gets(KnownVolume("a"), nil)
			d.says("B1 UpdateVolume pv/a").gets(nil, refused).says("B6 Read pv/a").gets(KnownVolume("a"), nil)
			assert.True(t, d.step.Done)
			assert.ErrorContains(t, d.step.Err, "in the version that was sent")
			assert.Positive(t, d.step.After, "W6")
			assert.Contains(t, d.published, "Warning FailedUpdate")
		})
	}
	t.Run("it has changed, each time", func(t *testing.T) {
		conflict := apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("the object has been modified"))
		d := newTalk(t, decision.Options{}, DataKey, At("10", KnownVolume("a")), KnownClaim())
		d.starts()
		for n := range 5 {
			d.says("B1 UpdateVolume pv/a").gets(nil, conflict).says("B6 Read pv/a").gets(At(fmt.Sprint(11+n), KnownVolume("a")), nil)
		}
		d.says("B1 UpdateVolume pv/a")
	})
}

// N, X10: what a write tells is told where the write took effect, whatever its reply: a proxy has sent it again.
func TestNAWriteThatIsSentTwiceIsTold(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	again := func(call *bindingtest.Call, do func() error) error {
		if call.Subresource == bindingtest.Status && call.Key == DataKey {
			require.NoError(t, do())
			return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "data", errors.New("the object has been modified"))
		}
		return do()
	}
	cluster.Client.Use(again)
	vanish(t, cluster, obj.VolumeKey("pv"))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.ClaimLost, cluster.Claim("default", "data").Status.Phase)
	told := slices.DeleteFunc(cluster.Events(), func(event decision.Event) bool { return event.Reason != decision.EventClaimLost })
	assert.Len(t, told, 1)
}

// A policy of admission keeps announcements off volumes, or the finalizer that comes with one: they would go and come without end, or a
// person could delete the volume and make it again while its deleter is at work (R8).
func TestX8AnAnnouncementThatIsNotStoredIsAnError(t *testing.T) {
	for name, strip := range map[string]func(*corev1.PersistentVolume){
		"X8 the announcement": func(volume *corev1.PersistentVolume) { delete(volume.Annotations, reclaim.AnnouncementAnnotation) },
		"R8 the finalizer":    func(volume *corev1.PersistentVolume) { volume.Finalizers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts()
			require.True(t, d.step.Action.Announces())
			stripped := At("90", d.step.Action.Volume.DeepCopy())
			strip(stripped)
			d.took(d.state.Proceed(d.key, engine.Reply{Object: stripped}))
			assert.True(t, d.step.Done)
			assert.ErrorContains(t, d.step.Err, "did not store it")
			assert.NotZero(t, d.step.After)
			assert.Equal(t, []string{"Warning FailedUpdate"}, d.published)
			d.state.Observe(At("91", stripped.DeepCopy())) // as what it has written before is shown
			after := d.step.After
			assert.Equal(t, after, d.starts().step.After, "W6: whatever wakes it")
		})
	}
}

func TestX8AWriteThatChangesNothingIsAnError(t *testing.T) {
	volume := KnownVolume("a", InPhase(corev1.VolumePending))
	state := stateOf(volume)
	key := obj.VolumeKey("a")
	require.True(t, state.Start(key).Action.Writes())
	step := state.Proceed(key, engine.Reply{Object: volume})
	assert.True(t, step.Done)
	assert.ErrorContains(t, step.Err, "did not store it")
	assert.NotZero(t, step.After)
}
