package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// scheduler is a kube-scheduler to start. Its name is that in its pods and of its log.
type scheduler struct {
	name    string
	program string
	config  configv1.KubeSchedulerConfiguration
	flags   []string
	token   string // an administrator's unless set
}

// withPlugin returns this module's scheduler with the profile beside it.
func withPlugin(t testing.TB, name string) *scheduler {
	t.Helper()
	text, err := os.ReadFile("../profile.yaml")
	require.NoError(t, err)
	s := &scheduler{name: name, program: filepath.Join(programs, "scheduler")}
	require.NoError(t, yaml.UnmarshalStrict(text, &s.config))
	require.Len(t, s.config.Profiles, 1)
	return s
}

// asItComes returns kube-scheduler with its own VolumeBinding.
func asItComes(name string) *scheduler {
	return &scheduler{name: name, program: filepath.Join(stock, "kube-scheduler"), config: configv1.KubeSchedulerConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "kubescheduler.config.k8s.io/v1", Kind: "KubeSchedulerConfiguration"},
		Profiles: []configv1.KubeSchedulerProfile{{}},
	}}
}

// start starts the scheduler. It ends with the test.
func (s *scheduler) start(t testing.TB, c cluster) *controlplane.Process {
	t.Helper()
	token := s.token
	if token == "" {
		token = c.plane.Config().BearerToken
	}
	kubeconfig, err := c.plane.Kubeconfig(s.name, token)
	require.NoError(t, err)
	s.config.Profiles[0].SchedulerName = &s.name
	s.config.ClientConnection.Kubeconfig = kubeconfig
	s.config.ClientConnection.QPS, s.config.ClientConnection.Burst = 1e6, 1e6
	s.config.LeaderElection.LeaderElect = new(false)
	s.config.PodInitialBackoffSeconds, s.config.PodMaxBackoffSeconds = new(int64(1)), new(int64(1))
	text, err := yaml.Marshal(s.config)
	require.NoError(t, err)
	file := filepath.Join(c.plane.Dir(), s.name+".yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	process, err := c.plane.Run(s.name, s.program, append([]string{"--config", file, "--secure-port=0"}, s.flags...)...)
	return controlplane.ForTest(t, process, err)
}

// binders are those that can stand behind a scheduler.
var binders = map[string]func(testing.TB, cluster) *controlplane.Process{
	"kube-controller-manager": func(t testing.TB, c cluster) *controlplane.Process {
		t.Helper()
		process, err := c.plane.ControllerManager([]string{controlplane.Binder, controlplane.ClaimProtection, controlplane.VolumeProtection})
		return controlplane.ForTest(t, process, err)
	},
	"pvbinder": startBinder,
}

func startBinder(t testing.TB, c cluster) *controlplane.Process {
	t.Helper()
	kubeconfig, err := c.plane.Kubeconfig("pvbinder", c.plane.Config().BearerToken)
	require.NoError(t, err)
	process, err := c.plane.Run("pvbinder", filepath.Join(programs, "pvbinder"), "--kubeconfig", kubeconfig, "--leader-elect=false", "--bind-address=")
	return controlplane.ForTest(t, process, err)
}
