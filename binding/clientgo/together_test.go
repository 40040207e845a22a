package clientgo_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestEventsDelayNothing(t *testing.T) {
	server := newServer(t, bindingtest.Claim("default", "lonely", "50Gi"))
	gate := newGate()
	defer close(gate.let)
	server.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbRecord {
			gate.wait()
		}
		return do()
	})
	r := start(t, server)
	<-gate.came
	for _, object := range []obj.Object{bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")} {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
	r.eventually(func() bool { return r.bound("data") }, "N a server that hangs on an event holds up no bind")
	require.NoError(t, r.stop(), "nor the end")
}

func TestTwoRunnersAtOnce(t *testing.T) {
	const pairs = 30
	server := newServer(t)
	r := start(t, server)
	start(t, server)
	var names []string
	for i := range pairs {
		names = append(names, fmt.Sprint("data-", i))
		for _, object := range []obj.Object{bindingtest.Volume(fmt.Sprint("disk-", i), "10Gi"), bindingtest.Claim("default", names[i], "5Gi")} {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	r.eventually(func() bool { return r.bound(names...) }, "all claims are bound")
	volumes := map[string]bool{}
	for _, name := range names {
		claim := r.Claim("default", name)
		volumes[claim.Spec.VolumeName] = true
		assert.Equal(t, claim.UID, r.Volume(claim.Spec.VolumeName).Spec.ClaimRef.UID)
	}
	assert.Len(t, volumes, pairs, "X1 one to one, whoever did it")
}
