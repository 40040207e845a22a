package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// pvbinder builds the program, once.
var pvbinder = sync.OnceValues(func() (string, error) {
	path := filepath.Join(plane.Dir(), "pvbinder")
	out, err := exec.Command("go", "build", "-o", path, "github.com/pvbind/pvbind/examples/cluster/pvbinder").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building pvbinder: %w\n%s", err, out)
	}
	return path, nil
})

// startBinder starts pvbinder, which may do anything and elects no leader.
func startBinder(t testing.TB, name string, args ...string) *controlplane.Process {
	t.Helper()
	return startBinderAs(t, plane.Config(), name, append([]string{"--leader-elect=false"}, args...)...)
}

// startBinderAs starts pvbinder with somebody's rights.
func startBinderAs(t testing.TB, config *rest.Config, name string, args ...string) *controlplane.Process {
	t.Helper()
	program, err := pvbinder()
	require.NoError(t, err)
	kubeconfig, err := plane.Kubeconfig(name, config.BearerToken)
	require.NoError(t, err)
	process, err := plane.Run(name, program, append([]string{"--kubeconfig", kubeconfig, "--bind-address="}, args...)...)
	return controlplane.ForTest(t, process, err)
}

// startManager starts kube-controller-manager with these controllers alone.
func startManager(t testing.TB, controllers ...string) *controlplane.Process {
	t.Helper()
	process, err := plane.ControllerManager(controllers)
	return controlplane.ForTest(t, process, err)
}

// stop ends a process as its operator would.
func stop(t testing.TB, process *controlplane.Process) {
	t.Helper()
	assert.NoError(t, process.Stop(30*time.Second))
}
