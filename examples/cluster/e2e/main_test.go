package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// plane is what all tests run on, one after the other. Each begins with an empty one: see newCluster.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(hostPathKubeconfig); kubeconfig != "" { // this is not the test, but what it has started
		fmt.Fprintln(os.Stderr, serveHostPaths(kubeconfig, os.Getenv(hostPathRoot)))
		os.Exit(1)
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pvbind-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		plane, err = controlplane.Start(dir)
	}
	if err == nil {
		defer plane.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane:", err)
		return 1
	}
	return m.Run()
}
