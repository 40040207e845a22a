package binding_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Whoever drives a Controller tells it of every object, and syncs the keys that it returns until none is left.
// The server in memory stands for a client of a cluster here.
func ExampleController() {
	ctx := context.Background()
	server := bindingtest.NewServer()
	controller := &binding.Controller{Client: server, Recorder: server}

	var queue []obj.Key
	for _, object := range []obj.Object{bindingtest.Volume("pv-1", "10Gi"), bindingtest.Claim("default", "data", "5Gi")} {
		created, err := server.Create(ctx, object)
		if err != nil {
			fmt.Println(err)
			return
		}
		queue = append(queue, controller.Observe(created)...)
	}
	for len(queue) > 0 {
		key := queue[0]
		queue = slices.DeleteFunc(queue, func(k obj.Key) bool { return k == key })
		result, err := controller.Sync(ctx, key)
		fmt.Println("synced", key, err)
		queue = append(queue, result.Next...)
		if result.After > 0 {
			time.AfterFunc(result.After, func() { /* put the key into the queue once more */ })
		}
	}
	fmt.Println(server.Claim("default", "data").Status.Phase, server.Volume("pv-1").Status.Phase)
	// Output:
	// synced pv/pv-1 <nil>
	// synced pvc/default/data <nil>
	// Bound Bound
}
