package match_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
)

// difference is a rule by which we leave upstream. adjust makes upstream follow it too; recognise
// tells from upstream's answers before and after that it was this rule that made them differ.
type difference struct {
	rule      string
	adjust    func(*Upstream)
	recognise func(u Upstream, before, after *corev1.PersistentVolume) bool
}

var differences = []difference{
	{"M4 access modes are checked without a node too", func(u *Upstream) { u.ByModes = true },
		func(u Upstream, before, after *corev1.PersistentVolume) bool {
			lacks := !volumehelpers.CheckAccessModes(u.Claim, before)
			return u.Node == nil && (lacks || KnownModes(after).Len() < KnownModes(before).Len() || sameSize(before, after))
		}},
	{"M2 an unclaimed volume can belong to a claim", func(u *Upstream) {
		u.Volumes = Without(u.Volumes, u.BelongsToAnother)
	}, func(u Upstream, before, _ *corev1.PersistentVolume) bool { return u.BelongsToAnother(before) }},
	{"M3 malformed volumes are never matched", func(u *Upstream) {
		u.Volumes = Without(u.Volumes, malformed)
	}, func(u Upstream, before, after *corev1.PersistentVolume) bool {
		// Upstream also lets a malformed one that is pre-bound keep the others of a node away.
		return before != nil && malformed(before) || before == nil && u.Node != nil
	}},
	{"M9 Pending volumes are as good as Available ones", func(u *Upstream) {
		u.Volumes = MadeAvailable(u.Volumes)
	}, func(_ Upstream, _, after *corev1.PersistentVolume) bool {
		return after.Status.Reason == WasPending
	}},
	{"M9 volumes whose storage is announced to be destroyed are not chosen", func(u *Upstream) {
		u.Volumes = Without(u.Volumes, announced)
	}, func(_ Upstream, before, _ *corev1.PersistentVolume) bool { return announced(before) }},
	{"M12 access modes of a pre-bound volume count", func(u *Upstream) {
		u.Volumes = Without(u.Volumes, func(v *corev1.PersistentVolume) bool {
			return u.SetAside(v) && !volumehelpers.CheckAccessModes(u.Claim, v)
		})
	}, func(u Upstream, before, after *corev1.PersistentVolume) bool {
		return u.Node != nil && (before == nil || u.SetAside(before) && !volumehelpers.CheckAccessModes(u.Claim, before))
	}},
	{"M13 what is pre-bound comes before a narrower free volume", func(u *Upstream) {
		u.SetAsideFirst = u.Node == nil
	}, func(u Upstream, before, after *corev1.PersistentVolume) bool {
		return u.Node == nil && u.SetAside(after) && KnownModes(before).Len() <= KnownModes(after).Len()
	}},
	{"M13 which of several pre-bound", func(u *Upstream) {
		u.SetAsideFirst = true
		u.Volumes = slices.Clone(u.Volumes)
		slices.SortStableFunc(u.Volumes, u.CompareSetAside)
	}, func(u Upstream, before, after *corev1.PersistentVolume) bool {
		return u.SetAside(after) && (before == nil && u.Node != nil || u.SetAside(before))
	}},
	{"M13 sets of modes of one size compete by capacity", func(u *Upstream) { u.BySize = true },
		func(u Upstream, before, after *corev1.PersistentVolume) bool {
			return u.Node == nil && sameSize(before, after) && KnownModes(before) != KnownModes(after)
		}},
	{"M13 ties are broken by modes, on a node, and by name", func(u *Upstream) {
		u.Volumes = slices.Clone(u.Volumes)
		slices.SortStableFunc(u.Volumes, u.CompareEquals)
	}, func(u Upstream, before, after *corev1.PersistentVolume) bool {
		return CapacityOf(before) == CapacityOf(after) && (u.Node != nil || sameSize(before, after))
	}},
}

func malformed(volume *corev1.PersistentVolume) bool {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return !ok || capacity.Sign() < 0 || slices.Contains(volume.Spec.AccessModes, "WriteNever")
}

func announced(volume *corev1.PersistentVolume) bool {
	return volume.Spec.ClaimRef == nil && volume.Annotations[phase.AnnouncementAnnotation] != ""
}

func sameSize(a, b *corev1.PersistentVolume) bool {
	return KnownModes(a).Len() == KnownModes(b).Len()
}

// Find agrees with upstream once the listed differences are taken back one after the other, and each
// of them is seen to matter.
func TestFindAgreesWithUpstream(t *testing.T) {
	t.Parallel()
	w := NewWorld(rand.NewPCG(SeedOf(t), 0))
	seen := map[string]int{}
	for n := range Worlds(100_000) {
		agree(t, w.Request(), seen, "world "+strconv.Itoa(n))
	}
	for _, d := range differences {
		assert.Positive(t, seen[d.rule], d.rule)
	}
	t.Log(seen)
}

// agree holds one answer to upstream's, and counts in seen which differences mattered.
func agree(t *testing.T, request match.Request, seen map[string]int, where string) {
	found, err := match.Find(request)
	require.NoError(t, err, where)
	u := Upstream{Request: request, Helpers: helpers}
	answer := u.Answer(t)
	for _, d := range differences {
		d.adjust(&u)
		adjusted := u.Answer(t)
		if NameOf(adjusted) != NameOf(answer) {
			seen[d.rule]++
			require.True(t, d.recognise(u, answer, adjusted), "%s, %s: %q became %q", where, d.rule, NameOf(answer), NameOf(adjusted))
		}
		answer = adjusted
	}
	require.Equal(t, NameOf(answer), NameOf(found.Volume), where)
	seen["chosen: "+strconv.FormatBool(found.Volume != nil)]++
}

// helpers are upstream's.
var helpers = Helpers{
	FindMatchingVolume:   volumehelpers.FindMatchingVolume,
	IsVolumeBoundToClaim: volumehelpers.IsVolumeBoundToClaim,
	CheckAccessModes:     volumehelpers.CheckAccessModes,
}
