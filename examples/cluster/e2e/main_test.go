package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

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
		err = awaitDefaultNamespace()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane:", err)
		return 1
	}
	return m.Run()
}

// awaitDefaultNamespace waits for the last thing that an API server does to be ready.
func awaitDefaultNamespace() error {
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err == nil, nil
	})
}
