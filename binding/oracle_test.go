package binding_test

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// seedOf is the seed of a random test: PVBIND_SEED if that is set, to repeat a failure or try another.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("PVBIND_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
	}
	t.Logf("PVBIND_SEED=%d", seed)
	return seed
}

func worlds(full int) int {
	if testing.Short() {
		return full / 20
	}
	return full
}

// upstream answers a request as kube-controller-manager (no node) or kube-scheduler (a node) would,
// with FindMatchingVolume. Its flags take back what differs on purpose, one rule at a time.
type upstream struct {
	match.Request
	byModes       bool // call it for the volumes of one set of access modes after the other, narrowest first
	bySize        bool // sets of one size together
	setAsideFirst bool // call it for what is Reserved or Held before anything else
}

func (u upstream) answer(t *testing.T) *corev1.PersistentVolume {
	if u.setAsideFirst {
		for _, volume := range u.Volumes {
			if u.setAside(volume) {
				if found := u.call(t, volume); found != nil {
					return found
				}
			}
		}
	}
	if u.Node != nil || !u.byModes {
		return u.call(t, u.Volumes...)
	}
	for _, group := range u.groups() {
		if found := u.call(t, group...); found != nil {
			return found
		}
	}
	return nil
}

func (u upstream) call(t *testing.T, volumes ...*corev1.PersistentVolume) *corev1.PersistentVolume {
	delayed := u.Class != nil && *u.Class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	found, err := volumehelpers.FindMatchingVolume(u.Claim, volumes, u.Node, nil, delayed, true)
	require.NoError(t, err)
	return found
}

func (u upstream) setAside(volume *corev1.PersistentVolume) bool {
	return volumehelpers.IsVolumeBoundToClaim(volume, u.Claim)
}

// groups are the volumes that have the modes asked for, by their set of modes, the narrowest first.
// Sets of one size come in no particular order upstream.
func (u upstream) groups() [][]*corev1.PersistentVolume {
	groups := map[accessmode.Set][]*corev1.PersistentVolume{}
	for _, volume := range u.Volumes {
		if volumehelpers.CheckAccessModes(u.Claim, volume) {
			group := knownModes(volume)
			if u.bySize {
				group = accessmode.Set(group.Len())
			}
			groups[group] = append(groups[group], volume)
		}
	}
	width := func(group accessmode.Set) int { return knownModes(groups[group][0]).Len() }
	order := slices.SortedFunc(maps.Keys(groups), func(a, b accessmode.Set) int {
		return cmp.Or(cmp.Compare(width(a), width(b)), cmp.Compare(a, b))
	})
	var sorted [][]*corev1.PersistentVolume
	for _, group := range order {
		sorted = append(sorted, groups[group])
	}
	return sorted
}

func knownModes(volume *corev1.PersistentVolume) accessmode.Set {
	var all accessmode.Set
	for _, mode := range volume.Spec.AccessModes {
		one, _ := accessmode.Of(mode)
		all |= one
	}
	return all
}

func capacityOf(volume *corev1.PersistentVolume) int64 {
	return volume.Spec.Capacity.Storage().MilliValue()
}

// difference is a rule by which we leave upstream. adjust makes upstream follow it too; recognise
// tells from upstream's answers before and after that it was this rule that made them differ.
type difference struct {
	rule      string
	adjust    func(*upstream)
	recognise func(u upstream, before, after *corev1.PersistentVolume) bool
}

var differences = []difference{
	{"M4 access modes are checked without a node too", func(u *upstream) { u.byModes = true },
		func(u upstream, before, after *corev1.PersistentVolume) bool {
			lacks := !volumehelpers.CheckAccessModes(u.Claim, before)
			return u.Node == nil && (lacks || knownModes(after).Len() < knownModes(before).Len() || sameSize(before, after))
		}},
	{"M2 an unclaimed volume can belong to a claim", func(u *upstream) {
		u.Volumes = without(u.Volumes, u.belongsToAnother)
	}, func(u upstream, before, _ *corev1.PersistentVolume) bool { return u.belongsToAnother(before) }},
	{"M3 malformed volumes are never matched", func(u *upstream) {
		u.Volumes = without(u.Volumes, malformed)
	}, func(u upstream, before, after *corev1.PersistentVolume) bool {
		// Upstream also lets a malformed one that is set aside keep the others of a node away.
		return before != nil && malformed(before) || before == nil && u.Node != nil
	}},
	{"M9 Pending volumes are as good as Available ones", func(u *upstream) {
		u.Volumes = madeAvailable(u.Volumes)
	}, func(_ upstream, _, after *corev1.PersistentVolume) bool {
		return after.Status.Reason == wasPending
	}},
	{"M12 access modes of a volume set aside count", func(u *upstream) {
		u.Volumes = without(u.Volumes, func(v *corev1.PersistentVolume) bool {
			return u.setAside(v) && !volumehelpers.CheckAccessModes(u.Claim, v)
		})
	}, func(u upstream, before, after *corev1.PersistentVolume) bool {
		return u.Node != nil && (before == nil || u.setAside(before) && !volumehelpers.CheckAccessModes(u.Claim, before))
	}},
	{"M13 what is set aside comes before a narrower free volume", func(u *upstream) {
		u.setAsideFirst = u.Node == nil
	}, func(u upstream, before, after *corev1.PersistentVolume) bool {
		return u.Node == nil && u.setAside(after) && knownModes(before).Len() <= knownModes(after).Len()
	}},
	{"M13 which of several set aside", func(u *upstream) {
		u.setAsideFirst = true
		u.Volumes = slices.Clone(u.Volumes)
		slices.SortStableFunc(u.Volumes, u.compareSetAside)
	}, func(u upstream, before, after *corev1.PersistentVolume) bool {
		return u.setAside(after) && (before == nil && u.Node != nil || u.setAside(before))
	}},
	{"M13 sets of modes of one size compete by capacity", func(u *upstream) { u.bySize = true },
		func(u upstream, before, after *corev1.PersistentVolume) bool {
			return u.Node == nil && sameSize(before, after) && knownModes(before) != knownModes(after)
		}},
	{"M13 equals are told apart by modes, on a node, and by name", func(u *upstream) {
		u.Volumes = slices.Clone(u.Volumes)
		slices.SortStableFunc(u.Volumes, u.compareEquals)
	}, func(u upstream, before, after *corev1.PersistentVolume) bool {
		return capacityOf(before) == capacityOf(after) && (u.Node != nil || sameSize(before, after))
	}},
}

func (u upstream) belongsToAnother(volume *corev1.PersistentVolume) bool {
	owners := u.Owners(volume.Name)
	return volume.Spec.ClaimRef == nil && len(owners) > 0 && !slices.Equal(owners, []obj.Key{obj.KeyOf(u.Claim)})
}

func malformed(volume *corev1.PersistentVolume) bool {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return !ok || capacity.Sign() < 0 || slices.Contains(volume.Spec.AccessModes, "WriteNever")
}

func sameSize(a, b *corev1.PersistentVolume) bool {
	return knownModes(a).Len() == knownModes(b).Len()
}

func without(volumes []*corev1.PersistentVolume, drop func(*corev1.PersistentVolume) bool) []*corev1.PersistentVolume {
	return slices.DeleteFunc(slices.Clone(volumes), drop)
}

// wasPending marks in a copy that its phase is not its own.
const wasPending = "WasPending"

func madeAvailable(volumes []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	volumes = slices.Clone(volumes)
	for i, volume := range volumes {
		if volume.Status.Phase == corev1.VolumePending || volume.Status.Phase == "" {
			available := *volume
			available.Status.Phase = corev1.VolumeAvailable
			available.Status.Reason = wasPending
			volumes[i] = &available
		}
	}
	return volumes
}

// compareSetAside puts Held first, then Reserved by waste and name, then the rest as it comes.
func (u upstream) compareSetAside(a, b *corev1.PersistentVolume) int {
	if !u.setAside(a) || !u.setAside(b) {
		return u.rank(a) - u.rank(b)
	}
	modes := cmp.Compare(knownModes(a).Len(), knownModes(b).Len())
	capacity := cmp.Compare(capacityOf(a), capacityOf(b))
	if u.Node != nil {
		modes, capacity = capacity, modes
	}
	return cmp.Or(u.rank(a)-u.rank(b), modes, capacity, cmp.Compare(a.Name, b.Name))
}

func (u upstream) rank(volume *corev1.PersistentVolume) int {
	switch {
	case !u.setAside(volume):
		return 2
	case volume.Spec.ClaimRef.UID == "":
		return 1
	}
	return 0
}

func (u upstream) compareEquals(a, b *corev1.PersistentVolume) int {
	if u.setAside(a) || u.setAside(b) {
		return u.compareSetAside(a, b)
	}
	byName := cmp.Compare(a.Name, b.Name)
	if u.Node == nil {
		return byName
	}
	return cmp.Or(cmp.Compare(knownModes(a).Len(), knownModes(b).Len()), byName)
}

// Find agrees with upstream once the listed differences are taken back one after the other, and each
// of them is seen to matter.
func TestFindAgreesWithUpstream(t *testing.T) {
	t.Parallel()
	w := world{rand.New(rand.NewPCG(seedOf(t), 0))}
	seen := map[string]int{}
	for n := range worlds(100_000) {
		agree(t, w.request(), seen, "world "+strconv.Itoa(n))
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
	u := upstream{Request: request}
	answer := u.answer(t)
	for _, d := range differences {
		d.adjust(&u)
		adjusted := u.answer(t)
		if nameOf(adjusted) != nameOf(answer) {
			seen[d.rule]++
			require.True(t, d.recognise(u, answer, adjusted), "%s, %s: %q became %q", where, d.rule, nameOf(answer), nameOf(adjusted))
		}
		answer = adjusted
	}
	require.Equal(t, nameOf(answer), nameOf(found.Volume), where)
	seen["chosen: "+strconv.FormatBool(found.Volume != nil)]++
}
