package controllerruntime_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
)

// A manager that binds the claims of its cluster.
func Example_manager() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "binder"})
	if err != nil {
		log.Fatal(err)
	}
	if err := (&controllerruntime.Reconciler{}).SetupWithManager(mgr); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

func ExampleSettle() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")).Build()
	outcome, err := controllerruntime.Settle(ctx, c, bindingtest.SettleOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(outcome) // nothing, for all is bound
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "data"}, claim); err != nil {
		log.Fatal(err)
	}
	fmt.Println(claim.Name, "is", claim.Status.Phase, "to", claim.Spec.VolumeName)
	// Output: data is Bound to disk
}
