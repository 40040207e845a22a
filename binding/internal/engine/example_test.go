package engine_test

import (
	"context"
	"fmt"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// A sync returns one action after the other. Who runs it performs each, here on a server in memory, and hands in the reply.
func ExampleState() {
	server := bindingtest.NewServer()
	state := engine.New(decision.Options{}, 1)
	for _, object := range []obj.Object{bindingtest.Volume("pv-1", "10Gi"), bindingtest.Claim("default", "data", "5Gi")} {
		created, err := server.Create(context.Background(), object)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sync", state.Observe(created))
	}

	step := state.Start(DataKey)
	for !step.Done {
		fmt.Println(step.Action.Rule, step.Action.Kind, step.Action.Target())
		step = state.Proceed(DataKey, Perform(server, step.Action))
	}
	fmt.Println(server.Claim("default", "data").Status.Phase, step.Err, step.Next)
	// Output:
	// sync [pv/pv-1]
	// sync [pvc/default/data]
	// B1 UpdateVolume pv/pv-1
	// B2 UpdateVolumeStatus pv/pv-1
	// B3 UpdateClaim pvc/default/data
	// B4 UpdateClaimStatus pvc/default/data
	// Bound <nil> []
}
