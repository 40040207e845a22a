package binding_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
)

// What holds in every world, whatever upstream says.
func TestFindAndExplainHoldTogether(t *testing.T) {
	w := world{rand.New(rand.NewPCG(seedOf(t), 1))}
	for n := range worlds(10_000) {
		request := w.request()
		before := copied(request)
		found, err := match.Find(request)
		require.NoError(t, err)
		report, err := match.Explain(request)
		require.NoError(t, err)

		require.Equal(t, nameOf(found.Volume), report.Chosen, "world %d, M14", n)
		require.Len(t, report.Verdicts, len(request.Volumes))
		require.LessOrEqual(t, len(report.String()), 512, "E2")
		var refused []match.Refusal
		for _, v := range report.Verdicts {
			require.Equal(t, v.Chosen, v.Volume == found.Volume, "world %d, M14", n)
			require.False(t, v.Chosen && !v.Fits(), "world %d, E3", n)
			if (v.Link == phase.Reserved || v.Link == phase.Held) && !v.Fits() {
				refused = append(refused, match.Refusal{Volume: v.Volume, Mismatches: v.Mismatches})
			}
			requireChecksAgree(t, request, v)
		}
		require.Equal(t, refused, found.Refused, "world %d, M12", n)

		w.shuffle(request.Volumes)
		again, err := match.Find(request)
		require.NoError(t, err)
		require.Equal(t, found, again, "world %d, M14: in another order", n)
		requireUnmodified(t, before, request)
	}
}

// requireChecksAgree compares a verdict of Explain with Check, and that with CheckNamed, which leaves
// out five rules (C7).
func requireChecksAgree(t *testing.T, request match.Request, v match.Verdict) {
	t.Helper()
	checked, err := match.Check(request.Claim, v.Volume, request.Terms)
	require.NoError(t, err)
	require.Equal(t, checked, v.Mismatches, "E3")
	if v.Link != phase.Unclaimed {
		return
	}
	named, err := match.CheckNamed(request.Claim, v.Volume)
	require.NoError(t, err)
	leftOut := []match.Reason{match.Claimed, match.Selector, match.NotAvailable, match.NodeAffinity, match.Delayed}
	counted := slices.DeleteFunc(slices.Clone(checked), func(m match.Mismatch) bool { return slices.Contains(leftOut, m.Reason) })
	require.Equal(t, counted.String(), named.String(), "C7")
}

func copied(request match.Request) match.Request {
	request.Claim = request.Claim.DeepCopy()
	request.Class = request.Class.DeepCopy()
	request.Node = request.Node.DeepCopy()
	request.Volumes = slices.Clone(request.Volumes)
	for i, volume := range request.Volumes {
		request.Volumes[i] = volume.DeepCopy()
	}
	return request
}

// requireUnmodified compares a request, its volumes in any order, with a copy of it (X6).
func requireUnmodified(t *testing.T, before, after match.Request) {
	t.Helper()
	byName := func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(before.Volumes, byName)
	slices.SortFunc(after.Volumes, byName)
	require.Equal(t, before.Volumes, after.Volumes, "X6")
	require.Equal(t, before.Claim, after.Claim, "X6")
	require.Equal(t, before.Class, after.Class, "X6")
	require.Equal(t, before.Node, after.Node, "X6")
}
