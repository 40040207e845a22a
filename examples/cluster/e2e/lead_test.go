package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

const takeovers = 6

// One of two works. When it is killed or stopped, in the middle of its work, the other takes over.
func TestAStandbyTakesOver(t *testing.T) {
	a := newAPI(t)
	w := watchOver(t, a)
	binders := map[string]*controlplane.Process{}
	for _, name := range []string{"pvbinder-1", "pvbinder-2"} {
		binders[name] = startCandidate(t, name)
	}
	objects := likePairs(takeovers * 50)
	for i := range takeovers {
		leader := a.leader(t, binders)
		before := w.seen()
		require.NoError(t, createAll(t.Context(), a, objects[i*100:(i+1)*100]))
		w.await(before + 150)
		if i%2 == 0 {
			binders[leader].Kill()
		} else {
			stop(t, binders[leader])
		}
		delete(binders, leader)
		allBound(t, a, (i+1)*50)
		binders[leader] = startCandidate(t, leader)
	}
	assertOneToOne(t, a, takeovers*50)
	w.assertNoCrime(t)
}

func startCandidate(t *testing.T, name string) *controlplane.Process {
	t.Helper()
	program, err := pvbinder()
	require.NoError(t, err)
	kubeconfig, err := plane.Kubeconfig(name, plane.Config().BearerToken)
	require.NoError(t, err)
	process, err := plane.Run(name, "env", "POD_NAME="+name, program,
		"--kubeconfig="+kubeconfig, "--bind-address=",
		"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=300ms")
	return controlplane.ForTest(t, process, err)
}

// leader waits until one of the binders has the lease, and returns its name.
func (a api) leader(t *testing.T, binders map[string]*controlplane.Process) (leader string) {
	t.Helper()
	eventually(t, func(ctx context.Context) (string, error) {
		lease, err := a.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "pvbinder", metav1.GetOptions{})
		if ignoreNotFound(err) != nil || err != nil {
			return "there is no lease", ignoreNotFound(err)
		}
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		fresh := lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < time.Second
		for name := range binders {
			if fresh && strings.HasPrefix(holder, name+"_") {
				leader = name
				return "", nil
			}
		}
		return fmt.Sprintf("the lease is held by %q", holder), nil
	})
	return leader
}
