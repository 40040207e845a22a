package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// programs are the directory of what is built: scheduler, pvextender and pvbinder; and stock that of kube-scheduler as it comes.
var programs, stock string

// cluster is a control plane with nothing in it. Tests run on one, one after the other, in worlds of their own.
type cluster struct {
	plane  *controlplane.Plane
	client *kubernetes.Clientset
}

var shared cluster

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pvbind-scheduler-")
	if err == nil {
		defer os.RemoveAll(dir)
		programs = dir
		err = build()
	}
	if err == nil {
		shared, err = startCluster(filepath.Join(dir, "shared"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane:", err)
		return 1
	}
	defer shared.plane.Stop()
	return m.Run()
}

// build builds the programs, the scheduler with the flags of the control plane's, so that both have most of their packages in common.
func build() (err error) {
	for name, dir := range map[string]string{"scheduler": "..", "pvextender": "../../extender/pvextender", "pvbinder": "../../cluster/pvbinder"} {
		command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(programs, name), ".")
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, failed := command.CombinedOutput(); failed != nil {
			return fmt.Errorf("building %s: %w\n%s", name, failed, out)
		}
	}
	stock, err = controlplane.Assets()
	return err
}

func startCluster(dir string) (c cluster, err error) {
	if err = os.Mkdir(dir, 0o700); err != nil {
		return c, err
	}
	if c.plane, err = controlplane.Start(dir); err != nil {
		return c, err
	}
	config := c.plane.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf" // what tests spend, the schedulers do not have
	c.client, err = kubernetes.NewForConfig(config)
	if err != nil {
		c.plane.Stop()
	}
	return c, err
}

// world is one on a control plane.
type world struct{ *clustertest.World }

func newWorld(t testing.TB, c cluster, name, scheduler string) *world {
	t.Helper()
	w := makeWorld(t, c, name, scheduler)
	t.Cleanup(w.End)
	return w
}

// makeWorld returns a world that ends with its control plane.
func makeWorld(t testing.TB, c cluster, name, scheduler string) *world {
	t.Helper()
	return &world{clustertest.NewWorld(t, c.client, name, scheduler)}
}
