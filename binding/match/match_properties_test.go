package match_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
)

// What holds in every world, whatever upstream says.
func TestFindAndExplainHoldTogether(t *testing.T) {
	w := NewWorld(rand.NewPCG(SeedOf(t), 1))
	for n := range Worlds(10_000) {
		request := w.Request()
		before := Copied(request)
		found, err := match.Find(request)
		require.NoError(t, err)
		report, err := match.Explain(request)
		require.NoError(t, err)

		require.Equal(t, NameOf(found.Volume), report.Chosen, "world %d, M14", n)
		require.Len(t, report.Verdicts, len(request.Volumes))
		require.LessOrEqual(t, len(report.String()), 512, "E2")
		var refused []match.Verdict
		for _, v := range report.Verdicts {
			require.Equal(t, v.Chosen, v.Volume == found.Volume, "world %d, M14", n)
			require.False(t, v.Chosen && !v.Fits(), "world %d, E3", n)
			if (v.ClaimRef == phase.ClaimRefPreBound || v.ClaimRef == phase.ClaimRefBound) && !v.Fits() {
				refused = append(refused, v)
			}
			requireChecksAgree(t, request, v)
		}
		require.Equal(t, refused, found.Rejected, "world %d, M12", n)

		w.ShuffleVolumes(request.Volumes)
		again, err := match.Find(request)
		require.NoError(t, err)
		require.Equal(t, found, again, "world %d, M14: in another order", n)
		RequireUnmodified(t, before, request)
	}
}

// requireChecksAgree compares a verdict of Explain with Check, and that with CheckNamed, which leaves
// out five rules (C7).
func requireChecksAgree(t *testing.T, request match.Request, v match.Verdict) {
	t.Helper()
	checked, err := match.Check(request.Claim, v.Volume, request.Terms)
	require.NoError(t, err)
	require.Equal(t, checked, v.Mismatches, "E3")
	if v.ClaimRef != phase.ClaimRefNone {
		return
	}
	named, err := match.CheckNamed(request.Claim, v.Volume, nil)
	require.NoError(t, err)
	leftOut := []match.Reason{match.BoundToAnotherClaim, match.Selector, match.NotAvailable, match.NodeAffinity, match.WaitForFirstConsumer}
	counted := slices.DeleteFunc(slices.Clone(checked), func(m match.Mismatch) bool { return slices.Contains(leftOut, m.Reason) })
	require.Equal(t, counted.String(), named.String(), "C7")
}
