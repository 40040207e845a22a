package controllerruntime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/hooks"
)

// full is a provisioner that fails.
type full struct{ asked atomic.Int32 }

func (f *full) Provision(context.Context, hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	f.asked.Add(1)
	return nil, errors.New("the array is full")
}

// A hook that fails is logged at a level that is seen by default, once though it is tried again.
func TestAHookThatFailsIsLoggedOnce(t *testing.T) {
	class := bindingtest.Class("ours")
	class.Provisioner = "example.com/ours"
	server := newServer(t, class, bindingtest.Claim("default", "data", "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class.Name }))
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(prefix, line string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(line, "ProvisioningFailed") {
			lines = append(lines, prefix+" "+line)
		}
	}, funcr.Options{})
	ours := &full{}
	manage(t, server, &controllerruntime.Reconciler{Hooks: hooks.Set{Provisioners: map[string]hooks.Provisioner{class.Provisioner: ours}}},
		func(options *ctrl.Options) { options.Logger = log })
	eventually(t, func() bool {
		claim := server.Claim("default", "data")
		claim.Labels = map[string]string{"version": claim.ResourceVersion} // with each change it is tried again, before the back-off is over
		_, _ = server.Update(t.Context(), claim)
		return ours.asked.Load() >= 3
	}, "it is tried again")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, lines, 1)
	for _, part := range []string{"pvbind", "pvc/default/data", `"hook"="example.com/ours"`, "the array is full"} {
		assert.Contains(t, lines[0], part)
	}
}
