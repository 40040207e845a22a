package engine_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// talk is one sync after another of one key, in which the test says what comes of each action.
type talk struct {
	*testing.T
	state     *engine.State
	key       obj.Key
	step      engine.Step
	version   int
	published []string // "Type Reason" of every event
}

func newTalk(t *testing.T, rules decision.Options, key obj.Key, objects ...obj.Object) *talk {
	state := engine.New(Unprotected(rules), 10)
	for _, object := range objects {
		state.Observe(object)
	}
	return &talk{T: t, state: state, key: key, version: 100}
}

func (d *talk) took(step engine.Step) *talk {
	d.step = step
	for _, event := range step.Publish {
		d.published = append(d.published, event.Type+" "+string(event.Reason))
	}
	return d
}

func (d *talk) starts() *talk { return d.took(d.state.Start(d.key)) }

// outwaitsCalls starts the sync again when no call goes on that began before the server went back (W8).
func (d *talk) outwaitsCalls() *talk {
	d.Helper()
	d.state.OutwaitCalls()
	return d.starts()
}

// says asserts the action of the step: "P2 Read pv/pvc-uid-1".
func (d *talk) says(action string) *talk {
	d.Helper()
	require.NoError(d, d.step.Err)
	require.False(d, d.step.Done, "it ended before %s", action)
	asked := d.step.Action
	require.Equal(d, action, asked.Rule+" "+string(asked.Kind)+" "+asked.Target().String())
	return d
}

// gets answers the action: a hook, a read, or a write that failed. That something does not exist the server says of
// every read, until it is believed.
func (d *talk) gets(object obj.Object, err error) *talk {
	if err != ErrNotFound {
		return d.took(d.state.Proceed(d.key, engine.Reply{Object: object, Err: err}))
	}
	asked := d.step.Action
	for !d.step.Done && d.step.Action.Kind == asked.Kind && d.step.Action.Target() == asked.Target() {
		d.took(d.state.Proceed(d.key, engine.Reply{Err: NotFoundError(asked.Target())}))
	}
	return d
}

// stored answers a write as a server does that takes it.
func (d *talk) stored() *talk {
	action := d.step.Action
	var object obj.Object
	if action.Volume != nil {
		object = action.Volume.DeepCopy()
	} else {
		object = action.Claim.DeepCopy()
	}
	d.version++
	object.SetResourceVersion(fmt.Sprint(d.version))
	if object.GetUID() == "" {
		object.SetUID("uid-of-volume")
	}
	return d.gets(object, nil)
}

// announces asserts that the call of a hook is announced next, on the volume or the claim, and stores that (R8).
func (d *talk) announces() *talk {
	d.Helper()
	require.True(d, d.step.Action.Announces(), "%s", d.step.Action)
	require.Equal(d, "R8", d.step.Action.Rule)
	known, err := strconv.Atoi(d.state.Known(d.step.Action.Target()).GetResourceVersion())
	require.NoError(d, err)
	version := fmt.Sprint(known + 1)
	d.version = max(d.version, known+1)
	if d.step.Action.Volume != nil {
		return d.gets(At(version, d.step.Action.Volume.DeepCopy()), nil)
	}
	return d.gets(At(version, d.step.Action.Claim.DeepCopy()), nil)
}

// announcesUnstored does so on the claim, and then reads that nothing is stored, and that the announcement stands.
func (d *talk) announcesUnstored() *talk {
	d.Helper()
	d.announces().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
	return d.says("R8 Read pvc/default/data").again()
}

// again answers a read with what is known.
func (d *talk) again() *talk {
	d.Helper()
	return d.gets(d.state.Known(d.step.Action.Key), nil)
}

// returns answers a read with the volume, as it is now but for the announcement, which stands.
func (d *talk) returns(volume *corev1.PersistentVolume) *talk {
	d.Helper()
	return d.gets(d.announced(volume), nil)
}

// announced returns the volume with the announcement that is known.
func (d *talk) announced(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	announcement, _ := reclaim.AnnouncementOf(d.state.Known(d.key))
	reclaim.Announce(volume, announcement)
	return volume
}

func (d *talk) ends() *talk {
	d.Helper()
	require.True(d, d.step.Done, "it goes on: %s", d.step.Action)
	require.NoError(d, d.step.Err)
	return d
}
