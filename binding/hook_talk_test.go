package binding_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// talk is one sync after another of one key, in which the test says what comes of each action.
type talk struct {
	*testing.T
	state     *binding.State
	key       obj.Key
	step      binding.Step
	version   int
	published []string // "Type Reason" of every event
}

func newTalk(t *testing.T, rules binding.Rules, key obj.Key, objects ...obj.Object) *talk {
	state := binding.NewHookedState(rules, 0)
	for _, object := range objects {
		state.Observe(object)
	}
	return &talk{T: t, state: state, key: key, version: 100}
}

func (d *talk) took(step binding.Step) *talk {
	d.step = step
	for _, event := range step.Published() {
		d.published = append(d.published, event.Type+" "+string(event.Reason))
	}
	return d
}

func (d *talk) starts() *talk { return d.took(d.state.Start(d.key)) }

// says asserts what the sync wants done next: "P2 Read pv/pvc-uid-1".
func (d *talk) says(action string) *talk {
	d.Helper()
	require.NoError(d, d.step.Err())
	require.False(d, d.step.Done(), "it ended and should have said %s", action)
	asked := d.step.Action()
	require.Equal(d, action, asked.Rule+" "+string(asked.Kind)+" "+asked.Target().String())
	return d
}

// gets answers the action: a hook, a read, or a write that failed. That something does not exist the server says of
// every read, until it is believed.
func (d *talk) gets(object obj.Object, err error) *talk {
	if err != errNotFound {
		return d.took(d.state.Proceed(d.key, binding.Reply(object, err)))
	}
	asked := d.step.Action()
	for !d.step.Done() && d.step.Action().Kind == asked.Kind && d.step.Action().Target() == asked.Target() {
		d.took(d.state.Proceed(d.key, binding.Reply(nil, notFoundError(asked.Target()))))
	}
	return d
}

// notFoundError is how the server says that an object does not exist.
func notFoundError(key obj.Key) *apierrors.StatusError {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(string(key.Kind)) + "s"}, key.Name)
}

// proxyError is what client-go makes of a proxy's 404.
func proxyError(key obj.Key) *apierrors.StatusError {
	resource := schema.GroupResource{Resource: notFoundError(key).Status().Details.Kind}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, key.Name, "404 page not found", 0, true)
}

// stored answers a write as a server does that takes it.
func (d *talk) stored() *talk {
	action := d.step.Action()
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

func (d *talk) ends() *talk {
	d.Helper()
	require.True(d, d.step.Done(), "it goes on: %s", d.step.Action())
	require.NoError(d, d.step.Err())
	return d
}
