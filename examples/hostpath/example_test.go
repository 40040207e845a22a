package main

import (
	"context"
	"fmt"
	"os"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
)

// A controller makes storage for claims once a provisioner is registered for the provisioner of their class.
func Example() {
	root, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	dirs := directories{root: root}
	hookSet := hooks.Set{
		Provisioners: map[string]hooks.Provisioner{"example.com/hostpath": dirs},
		Deleters:     map[string]hooks.Deleter{"example.com/hostpath": dirs},
	}
	fast := bindingtest.Class("fast", func(class *storagev1.StorageClass) { class.Provisioner = "example.com/hostpath" })
	cluster := bindingtest.NewClusterWith(bindingtest.SettleOptions{Hooks: hookSet}, fast, claim("data", "fast"))
	if _, err := cluster.Settle(context.Background()); err != nil {
		panic(err)
	}
	data := cluster.Claim("default", "data")
	made, err := os.Stat(cluster.Volume(data.Spec.VolumeName).Spec.HostPath.Path)
	fmt.Println(data.Status.Phase, data.Spec.VolumeName, made.Name(), err)
	// Output: Bound pvc-uid-2 pvc-uid-2 <nil>
}
