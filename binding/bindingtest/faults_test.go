package bindingtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

var errBroken = errors.New("broken")

func createVia(client *bindingtest.Client, name string) error {
	_, err := client.Create(context.Background(), bindingtest.Volume(name, "1Gi"))
	return err
}

func TestFaultsHitTheNthMatchingCall(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.Use(bindingtest.Fail(2, bindingtest.On(bindingtest.VerbCreate, obj.KindVolume), errBroken))
	require.NoError(t, createVia(client, "a"))
	_, err := client.GetVolume(t.Context(), "a")
	require.NoError(t, err, "not a create")
	_, err = client.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, err, "not a volume")
	assert.ErrorIs(t, createVia(client, "b"), errBroken)
	require.NoError(t, createVia(client, "b"), "once")
	must.Create(t, server, bindingtest.Volume("c", "1Gi")) // others are not affected
}

func TestConflictIsOneWithoutAWrite(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	client.Use(bindingtest.Conflict(1, bindingtest.OnStatus(obj.KindVolume)))
	must.Update(t, client, volume.DeepCopy())
	_, err := client.UpdateVolumeStatus(t.Context(), boundVolume(volume))
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	assert.Equal(t, volume, server.Volume("a"))
}

func TestAnsweredWithAnotherObject(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.Use(bindingtest.Answer(2, bindingtest.AnyWrite, &corev1.PersistentVolume{}))
	require.NoError(t, createVia(client, "a"))
	replied, err := client.CreateVolume(t.Context(), bindingtest.Volume("b", "1Gi"))
	require.NoError(t, err)
	assert.Equal(t, &corev1.PersistentVolume{}, replied)
	assert.NotNil(t, server.Volume("b"), "it took effect")
	assert.Equal(t, "create pv/b: answered with another object", server.Calls()[1].String())
}

func TestLostAnswerTookEffect(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.Use(bindingtest.LoseAnswer(1, bindingtest.AnyWrite))
	assert.ErrorIs(t, createVia(client, "a"), bindingtest.ErrAnswerLost)
	assert.NotNil(t, server.Volume("a"))
	call := server.Calls()[0]
	assert.True(t, call.Changed())
	assert.ErrorIs(t, call.Err, bindingtest.ErrAnswerLost)
}

func TestCrash(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	client.CrashAfter(2)
	require.NoError(t, createVia(client, "a"))
	require.True(t, apierrors.IsAlreadyExists(createVia(client, "a")), "a refused write does not count")
	assert.ErrorIs(t, createVia(client, "b"), bindingtest.ErrCrashed)
	assert.NotNil(t, server.Volume("b"), "the last write took effect")
	assert.True(t, client.Crashed())

	logged := len(server.Calls())
	assert.ErrorIs(t, createVia(client, "c"), bindingtest.ErrCrashed)
	_, err := client.GetVolume(t.Context(), "a")
	assert.ErrorIs(t, err, bindingtest.ErrCrashed)
	client.Record(decision.Event{On: keyA})
	assert.Len(t, server.Calls(), logged, "a crashed client makes no calls")

	client.Restart()
	require.NoError(t, createVia(client, "c"))
	client.CrashAfter(0)
	assert.ErrorIs(t, createVia(client, "d"), bindingtest.ErrCrashed)
	assert.Nil(t, server.Volume("d"))
}

func TestHooksNest(t *testing.T) {
	client := bindingtest.NewServer().NewClient("me")
	var order []string
	note := func(name string) bindingtest.Hook {
		return func(call *bindingtest.Call, do func() error) error {
			order = append(order, name+" before")
			err := do()
			assert.True(t, call.Changed())
			order = append(order, name+" after")
			return err
		}
	}
	client.Use(note("outer"), note("inner"))
	require.NoError(t, createVia(client, "a"))
	assert.Equal(t, []string{"outer before", "inner before", "inner after", "outer after"}, order)
}

func TestBeforeLetsSomebodyElseIn(t *testing.T) {
	server := bindingtest.NewServer()
	client := server.NewClient("me")
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	client.Use(bindingtest.Before(1, bindingtest.AnyWrite, func() {
		must.Update(t, server, volume.DeepCopy(), func(v pv) { v.Labels = map[string]string{"mine": ""} })
	}))
	_, err := client.UpdateVolumeStatus(t.Context(), boundVolume(volume))
	assert.True(t, apierrors.IsConflict(err), "a real conflict: %v", err)
}

func TestAHookThatAnswersWithoutAnObject(t *testing.T) {
	client := bindingtest.NewServer().NewClient("me")
	client.Use(func(*bindingtest.Call, func() error) error { return nil })
	_, err := client.GetVolume(t.Context(), "a")
	assert.ErrorContains(t, err, "hook")
}

func TestAnEndedContextMakesNoCall(t *testing.T) {
	server := bindingtest.NewServer()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := server.Create(ctx, bindingtest.Volume("a", "1Gi"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, server.Calls())
}
