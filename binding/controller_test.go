package binding_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

func TestB6ABindIsFourWritesAndNoRead(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))

	require.NoError(t, cluster.Settle(t.Context()))

	writes, reads := ControllerCalls(cluster.Server)
	assert.Len(t, writes, 4, "%s", writes)
	assert.Empty(t, reads)
	assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
	assert.Equal(t, corev1.VolumeBound, cluster.Volume("pv").Status.Phase)
}

// TestB6WorkersNeverGetInEachOthersWay binds pairs of all sizes, more volumes than claims and fewer, with
// many workers: four writes a bind, no read, no conflict, nothing written twice.
func TestB6WorkersNeverGetInEachOthersWay(t *testing.T) {
	for _, test := range []struct{ volumes, claims, workers int }{
		{200, 200, 1}, {200, 200, 64}, {120, 200, 16}, {200, 120, 16},
	} {
		t.Run(fmt.Sprintf("%d volumes, %d claims, %d workers", test.volumes, test.claims, test.workers), func(t *testing.T) {
			server := bindingtest.NewServer()
			for i := range test.volumes {
				_, err := server.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", i), fmt.Sprintf("%dGi", 1+i%5)))
				require.NoError(t, err)
			}
			for i := range test.claims {
				_, err := server.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), fmt.Sprintf("%dGi", 1+i%5)))
				require.NoError(t, err)
			}

			require.Empty(t, newDriver(server).run(t.Context(), test.workers))

			binds := min(test.volumes, test.claims)
			writes, reads := ControllerCalls(server)
			assert.Empty(t, reads)
			assert.Len(t, writes, 4*binds+max(0, test.volumes-test.claims), "and a volume that nobody wants becomes Available")
			assert.Equal(t, binds, CountBound(t, server, test.claims))
		})
	}
}
