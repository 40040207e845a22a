package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// All tests run on one control plane, one after the other, in namespaces of their own.
var (
	plane   *controlplane.Plane
	client  *kubernetes.Clientset
	program string // pvextender, built
)

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	dir, err := os.MkdirTemp("", "pvbind-extender-")
	if err == nil {
		defer os.RemoveAll(dir)
		plane, err = controlplane.Start(dir)
	}
	if err == nil {
		defer plane.Stop()
		client, err = kubernetes.NewForConfig(plane.Config())
	}
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		end()
		fmt.Fprintln(os.Stderr, "the control plane:", err)
		return 1
	}
	binder := &clientgo.Runner{Clientset: client, Logger: slog.New(slog.DiscardHandler)}
	go func() { ended <- binder.Run(ctx) }()
	code := m.Run()
	end()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, "the binder:", err)
		return 1
	}
	return code
}

func build(dir string) error {
	program = filepath.Join(dir, "pvextender")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/pvbind/pvbind/examples/extender/pvextender").CombinedOutput(); err != nil {
		return fmt.Errorf("building pvextender: %w\n%s", err, out)
	}
	return nil
}
