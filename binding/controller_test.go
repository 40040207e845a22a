package binding_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// controllerCalls are the writes and reads that controllers made, one line each.
func controllerCalls(server *bindingtest.Server) (writes, reads []string) {
	for _, call := range server.Calls() {
		switch {
		case call.Actor == "" || call.Verb == bindingtest.VerbRecord:
		case call.Writes():
			writes = append(writes, call.String())
		default:
			reads = append(reads, call.String())
		}
	}
	return writes, reads
}

func TestB6ABindIsFourWritesAndNoRead(t *testing.T) {
	cluster := bindingtest.NewCluster(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))

	require.NoError(t, cluster.Settle(t.Context()))

	writes, reads := controllerCalls(cluster.Server)
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

			require.Empty(t, newCrew(server).run(t.Context(), test.workers))

			binds := min(test.volumes, test.claims)
			writes, reads := controllerCalls(server)
			assert.Empty(t, reads)
			assert.Len(t, writes, 4*binds+max(0, test.volumes-test.claims), "and a volume that nobody wants becomes Available")
			assert.Equal(t, binds, countBound(t, server, test.claims))
		})
	}
}

// countBound counts the claims that are Bound, each to a volume of its own (X1).
func countBound(t testing.TB, server *bindingtest.Server, claims int) int {
	owners := map[string]string{}
	for i := range claims {
		claim := server.Claim("default", fmt.Sprintf("c-%03d", i))
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		require.Empty(t, owners[claim.Spec.VolumeName], "X1")
		owners[claim.Spec.VolumeName] = claim.Name
		require.Equal(t, claim.UID, server.Volume(claim.Spec.VolumeName).Spec.ClaimRef.UID)
	}
	return len(owners)
}
