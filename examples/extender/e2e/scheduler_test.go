package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// configuration is the scheduler's; that of the README, but for timeouts, backoff and how it connects.
var configuration = template.Must(template.New("").Parse(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: {{.Kubeconfig}}, qps: 1e6, burst: 1000000}
leaderElection: {leaderElect: false}
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
{{- if .Extender}}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: VolumeBinding}]
extenders:
- urlPrefix: http://{{.Extender}}
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  weight: 1
  nodeCacheCapable: {{.NodeCacheCapable}}
  httpTimeout: 11m
{{- end}}
`))

// What the README tells people to write is what the tests run.
func TestConfigurationIsTheReadmes(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(readme), "```yaml\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```")
	require.True(t, found)
	var used bytes.Buffer
	require.NoError(t, configuration.Execute(&used, map[string]any{"Extender": "127.0.0.1:8888", "NodeCacheCapable": true}))
	ours := parsed(t, used.String())
	for _, ofTests := range []string{"clientConnection", "leaderElection", "podInitialBackoffSeconds", "podMaxBackoffSeconds"} {
		delete(ours, ofTests)
	}
	require.Equal(t, parsed(t, block), ours)
}

func parsed(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(text), &fields))
	return fields
}

// startScheduler starts kube-scheduler, with the extender at this address and without its VolumeBinding; or as it comes
// if the address is empty. It ends with the test.
func startScheduler(t *testing.T, address string, nodeCacheCapable bool) *controlplane.Process {
	t.Helper()
	assets, err := controlplane.Assets()
	require.NoError(t, err)
	kubeconfig, err := plane.Kubeconfig("scheduler", plane.Config().BearerToken)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, configuration.Execute(&text, map[string]any{"Kubeconfig": kubeconfig, "Extender": address, "NodeCacheCapable": nodeCacheCapable}))
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
	process, err := plane.Run("kube-scheduler", filepath.Join(assets, "kube-scheduler"), "--config", file, "--secure-port=0")
	return controlplane.ForTest(t, process, err)
}

var extenders atomic.Int32

// startExtender starts pvextender and returns where it listens. It ends with the test.
func startExtender(t *testing.T, args ...string) (process *controlplane.Process, address string) {
	t.Helper()
	kubeconfig, err := plane.Kubeconfig("pvextender", plane.Config().BearerToken)
	require.NoError(t, err)
	name := fmt.Sprintf("pvextender-%d", extenders.Add(1)) // a log of its own
	process, err = plane.Run(name, program, append([]string{"--kubeconfig", kubeconfig, "--listen=127.0.0.1:0", "--logging-format=json"}, args...)...)
	controlplane.ForTest(t, process, err)
	clustertest.Eventually(t, func() bool {
		address = addressIn(process.Output())
		return address != ""
	}, "the extender listens")
	return process, address
}

func addressIn(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
			return said.Address
		}
	}
	return ""
}
