package e2e

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

func startBinder(t testing.TB, name string, args ...string) *controlplane.Process {
	t.Helper()
	kubeconfig, err := plane.Kubeconfig(name, "admin")
	require.NoError(t, err)
	os.Setenv("BINDER", kubeconfig)
	process, err := plane.Run(name, os.Args[0], args...)
	os.Unsetenv("BINDER")
	return cleanedUp(t, process, err)
}

func runBinder(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runner := clientgo.Runner{Clientset: kubernetes.NewForConfigOrDie(config)}
	if err := runner.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// startManager starts kube-controller-manager with these controllers alone.
func startManager(t testing.TB, controllers ...string) *controlplane.Process {
	t.Helper()
	process, err := plane.ControllerManager(controllers...)
	return cleanedUp(t, process, err)
}

// cleanedUp kills the process when the test is over, however it ends.
func cleanedUp(t testing.TB, process *controlplane.Process, err error) *controlplane.Process {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}

// stop ends a process as its operator would.
func stop(t testing.TB, process *controlplane.Process) {
	t.Helper()
	assert.NoError(t, process.Stop(30*time.Second))
}
