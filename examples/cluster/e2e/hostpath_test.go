package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// hostPathProvisioner is the provisioner of kube-controller-manager that makes directories below /tmp. It deletes any there.
const hostPathProvisioner = "kubernetes.io/host-path"

// What a process of the test's own program is told by, when it is to be the binder in place of the test.
const (
	hostPathKubeconfig = "PVBIND_E2E_HOSTPATH_KUBECONFIG"
	hostPathRoot       = "PVBIND_E2E_HOSTPATH_ROOT"
)

// hostPaths are hooks that do with directories what kube-controller-manager does.
type hostPaths struct{ root string }

func (h hostPaths) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	path := filepath.Join(h.root, request.Volume.Name)
	takeShortTime()
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, err
	}
	takeShortTime()
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path}
	return request.Volume, nil
}

func (h hostPaths) Delete(_ context.Context, request hooks.ReclaimRequest) error {
	path := filepath.Join(h.root, request.Volume.Name)
	if source := request.Volume.Spec.HostPath; source != nil {
		path = source.Path
	}
	if !strings.HasPrefix(path, "/tmp/") {
		return fmt.Errorf("%s is not below /tmp", path)
	}
	takeShortTime()
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	takeShortTime()
	return nil
}

// takeShortTime is there for the process to be killed in.
func takeShortTime() { after(rand.N(5 * time.Millisecond)) }

// serveHostPaths is the whole of the process: it works until it is killed.
func serveHostPaths(kubeconfig, root string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	paths := hostPaths{root}
	runner := &clientgo.Runner{
		Clientset: client,
		Options:   decision.Options{Protection: decision.ProtectionOn},
		Hooks: hooks.Set{
			Provisioners:   map[string]hooks.Provisioner{hostPathProvisioner: paths},
			Deleters:       map[string]hooks.Deleter{hostPathProvisioner: paths},
			SourceDeleters: map[string]hooks.Deleter{"hostPath": paths},
			Timeout:        time.Second,
		},
	}
	return runner.Run(context.Background())
}

// startHostPathBinder starts a binder with these hooks, as a process of its own.
func startHostPathBinder(t testing.TB, root string) *controlplane.Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	kubeconfig, err := plane.Kubeconfig("hostpaths", plane.Config().BearerToken)
	require.NoError(t, err)
	process, err := plane.Run("hostpaths", "env", hostPathKubeconfig+"="+kubeconfig, hostPathRoot+"="+root, self)
	return controlplane.ForTest(t, process, err)
}
