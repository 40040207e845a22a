package index_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// A hundred thousand times, in worlds of few volumes and of many, after random changes.
func TestIndexAgreesWithTheList(t *testing.T) {
	for _, c := range []struct {
		name                    string
		worlds, volumes, rounds int
	}{
		{"few volumes", 15_000, 10, 6},
		{"some volumes", 1_000, 40, 10},
		{"many volumes", 3, 2_500, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seed, rounds := SeedOf(t), c.rounds
			if testing.Short() {
				rounds = 6
			}
			for n := range max(1, Worlds(c.worlds)) {
				x := newIndexed(seed, uint64(n), c.volumes)
				x.load(x.IntN(c.volumes + 1))
				for range rounds {
					for range x.IntN(1 + c.volumes/2) {
						x.change(t)
					}
					x.requireAgreement(t)
				}
			}
		})
	}
}

func reservable(name string, edits ...VolumeEdit) *corev1.PersistentVolume {
	volume := FitVolume(name, edits...)
	volume.ResourceVersion = "1"
	return volume
}

var (
	data = obj.ClaimKey("default", "data")
	logs = obj.ClaimKey("default", "logs")
)

func logsClaim() *corev1.PersistentVolumeClaim {
	return FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = "logs", "uid-2" })
}

func foundFor(t *testing.T, index *index.Index, claim *corev1.PersistentVolumeClaim) string {
	t.Helper()
	found, err := index.Find(claim, match.Terms{})
	require.NoError(t, err)
	return NameOf(found.Volume)
}

func TestIndexReserve(t *testing.T) {
	var index index.Index
	index.Set(reservable("a"))
	assert.False(t, index.Reserve("b", "1", data), "not known")
	assert.False(t, index.Reserve("a", "0", data), "decided on another version")
	assert.Equal(t, "a", foundFor(t, &index, logsClaim()))

	assert.True(t, index.Reserve("a", "1", data))
	assert.Equal(t, []obj.Key{data}, index.Owners("a"))
	assert.True(t, index.Reserve("a", "1", data), "it has it already")
	assert.False(t, index.Reserve("a", "1", logs), "B6 the loser has to find another")
	assert.Equal(t, "a", foundFor(t, &index, FitClaim()), "the claim itself finds it")
	assert.Empty(t, foundFor(t, &index, logsClaim()), "others do not")
	line, err := index.Summary(logsClaim(), match.Terms{})
	require.NoError(t, err)
	assert.Equal(t, "0/1 volumes fit: 1 BoundToAnotherClaim", line.String(), "E2")

	index.Release("a", logs)
	assert.Empty(t, foundFor(t, &index, logsClaim()), "not theirs to release")
	index.Release("a", data)
	assert.Equal(t, "a", foundFor(t, &index, logsClaim()))
	index.Release("a", data)
	index.Release("b", data)
}

func TestIndexReservationEnds(t *testing.T) {
	newer := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		volume := reservable("a", edits...)
		volume.ResourceVersion = "2"
		return volume
	}
	mine := []obj.Key{data}
	cases := []struct {
		rule string
		then func(*index.Index)
		want []obj.Key
	}{
		{"B6 not with a newer version", func(x *index.Index) { x.Set(newer()) }, mine},
		{"not with a change of phase", func(x *index.Index) { x.Set(newer(InPhase(corev1.VolumeBound))) }, mine},
		{"L3 with the write itself", func(x *index.Index) { x.Set(newer(BoundToClaim)) }, nil},
		{"L5 with somebody else's", func(x *index.Index) { x.Set(newer(RefersTo("default", "logs", "uid-2"))) }, nil},
		{"with the volume", func(x *index.Index) { x.Delete("a") }, nil},
		{"with Release", func(x *index.Index) { x.Release("a", data) }, nil},
		{"M2 under an owner's name", func(x *index.Index) { x.SetClaim(Owning(logs, "a")) }, []obj.Key{logs}},
		{"M2 under the names of several", func(x *index.Index) { x.SetClaim(Owning(logs, "a")); x.SetClaim(Owning(data, "a")) }, []obj.Key{data, logs}},
		{"M2 not with the owner's going", func(x *index.Index) { x.SetClaim(Owning(logs, "a")); x.DeleteClaim(logs) }, mine},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			var index index.Index
			index.Set(reservable("a"))
			require.True(t, index.Reserve("a", "1", data))
			c.then(&index)
			assert.Equal(t, c.want, index.Owners("a"))
			index.Set(newer())
			theirs := len(c.want) > 0 && !slices.Equal(c.want, []obj.Key{logs})
			assert.Equal(t, theirs, !index.Reserve("a", "2", logs))
		})
	}
}

func TestIndexReserveWhatIsClaimed(t *testing.T) {
	for rule, c := range map[string]struct {
		edit VolumeEdit
		want bool
	}{
		"L2 reserved": {PreBound, true},
		"L3 held":     {BoundToClaim, true},
		"L5 other":    {RefersTo("default", "logs", "uid-2"), false},
	} {
		var index index.Index
		index.Set(reservable("a", c.edit))
		assert.Equal(t, c.want, index.Reserve("a", "1", data), rule)
		assert.Empty(t, index.Owners("a"), "%s: the claimRef is enough", rule)
	}
}

// M2: an owner that is known before the volume is, or after it went, counts when it comes.
func TestIndexOwnerOutlivesTheVolume(t *testing.T) {
	var index index.Index
	index.SetClaim(Owning(data, "a"))
	index.Set(reservable("a"))
	assert.Empty(t, foundFor(t, &index, logsClaim()))
	assert.Equal(t, "a", foundFor(t, &index, FitClaim()))
	index.Delete("a")
	assert.Zero(t, index.Len())
	index.Set(reservable("a"))
	assert.False(t, index.Reserve("a", "1", logs))
	index.DeleteClaim(data)
	assert.Equal(t, "a", foundFor(t, &index, logsClaim()))
}

// M2: a volume that two claims own is for neither of them, until one of them owns it no more.
func TestIndexTwoOwners(t *testing.T) {
	var index index.Index
	index.Set(reservable("a"))
	index.SetClaim(Owning(data, "a"))
	index.SetClaim(Owning(logs, "a"))
	assert.Equal(t, []obj.Key{data, logs}, index.Owners("a"))
	for _, claim := range []*corev1.PersistentVolumeClaim{FitClaim(), logsClaim()} {
		assert.Empty(t, foundFor(t, &index, claim))
		line, err := index.Summary(claim, match.Terms{})
		require.NoError(t, err)
		assert.Equal(t, "0/1 volumes fit: 1 BoundToAnotherClaim", line.String(), "E2")
		assert.False(t, index.Reserve("a", "1", obj.KeyOf(claim)))
	}
	before := index.Owners("a")
	index.SetClaim(Owning(logs, "b"))
	assert.Equal(t, []obj.Key{data, logs}, before, "what was returned stays as it was")
	assert.Equal(t, "a", foundFor(t, &index, FitClaim()))
	assert.True(t, index.Reserve("a", "1", data))
}

// M2: an annotation is no proof, and the lack of one is none either.
func TestIndexOwnersHaveStatus(t *testing.T) {
	forged, bare := Owning(logs, "a"), Owning(logs, "a")
	forged.Status.Phase = corev1.ClaimPending
	bare.Annotations = nil
	for _, c := range []struct {
		claim *corev1.PersistentVolumeClaim
		want  []obj.Key
	}{{forged, nil}, {bare, []obj.Key{logs}}} {
		var index index.Index
		index.SetClaim(c.claim)
		assert.Equal(t, c.want, index.Owners("a"))
	}
}

func TestEmptyIndex(t *testing.T) {
	var index index.Index
	assert.Zero(t, index.Len())
	assert.Empty(t, foundFor(t, &index, FitClaim()))
	line, err := index.Summary(FitClaim(), match.Terms{})
	require.NoError(t, err)
	assert.Equal(t, "0/0 volumes fit: there are none", line.String())
	index.Delete("a")
	index.Load()
}

// E2: of equal sizes that are written differently, the Summary has the one of the first volume by name.
func TestIndexSummaryHasTheLargestAsWritten(t *testing.T) {
	claim := FitClaim()
	volumes := []*corev1.PersistentVolume{FitVolume("b", Sized("2Gi")), FitVolume("a", Sized("2147483648")), FitVolume("c", Sized("2Gi"))}
	report, err := match.Explain(match.Request{Claim: claim, Volumes: volumes})
	require.NoError(t, err)
	var index index.Index
	index.Load(volumes...)
	line, err := index.Summary(claim, match.Terms{})
	require.NoError(t, err)
	assert.Equal(t, "0/3 volumes fit: 3 TooSmall (largest 2147483648); a would fit but for its size: 2147483648, the claim requests 10Gi", line.String())
	assert.Equal(t, report.Summary(), line)
}

// X7: what makes Find fail makes the Index fail in the same way.
func TestIndexErrors(t *testing.T) {
	var index index.Index
	claim := FitClaim(RequestingModes("ReadNever"))
	_, want := match.Find(match.Request{Claim: claim})
	require.Error(t, want)
	_, err := index.Find(claim, match.Terms{})
	assert.Equal(t, want, err)
	line, err := index.Summary(claim, match.Terms{})
	assert.Equal(t, want, err)
	assert.Zero(t, line)
}

// Many claims that take volumes at once, while volumes change, never get one twice.
func TestIndexGivesAVolumeOnce(t *testing.T) {
	const volumes, workers = 200, 8
	var index index.Index
	for i := range volumes {
		index.Set(reservable(fmt.Sprintf("pv-%d", i), Labelled("disk", fmt.Sprint(i%3)), OnlyIn("a")))
	}
	taken := map[string]*atomic.Int32{}
	for i := range volumes {
		taken[fmt.Sprintf("pv-%d", i)] = &atomic.Int32{}
	}
	var wait sync.WaitGroup
	var got atomic.Int32
	for w := range workers {
		wait.Go(func() {
			claim := FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = fmt.Sprint("data-", w), "" })
			for i := 0; ; i++ {
				found, err := index.Find(claim, match.Terms{Node: NodeIn("a")})
				if err != nil || found.Volume == nil {
					assert.NoError(t, err)
					return
				}
				name := found.Volume.Name
				if !index.Reserve(name, found.Volume.ResourceVersion, obj.KeyOf(claim)) {
					continue
				}
				if i%5 == 0 {
					index.Release(name, obj.KeyOf(claim)) // a write that failed
					continue
				}
				assert.EqualValues(t, 1, taken[name].Add(1), name)
				got.Add(1)
				bound := reservable(name, RefersTo("default", claim.Name, "uid"))
				bound.ResourceVersion = "2"
				index.Set(bound)
				_, err = index.Summary(claim, match.Terms{})
				assert.NoError(t, err)
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, volumes, got.Load())
	assert.Equal(t, volumes, index.Len())
}

func TestIndexFindDoesNotAllocate(t *testing.T) {
	var volumes []*corev1.PersistentVolume
	for i := range 500 {
		size := Sized(fmt.Sprintf("%dGi", 1+i%50))
		volumes = append(volumes,
			FitVolume(fmt.Sprintf("zonal-%d", i), size, OnlyIn("a")),
			FitVolume(fmt.Sprintf("labelled-%d", i), size, Labelled("tier", "gold")),
			FitVolume(fmt.Sprintf("bound-%d", i), size, RefersTo("other", fmt.Sprint(i), "uid")))
	}
	var index index.Index
	index.Load(volumes...)
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		terms match.Terms
	}{
		"plain":    {FitClaim(), match.Terms{Class: ClassWith(new(storagev1.VolumeBindingImmediate))}},
		"node":     {FitClaim(), OnNode(match.Terms{}, NodeIn("a"))},
		"selector": {FitClaim(RequestingLabel("tier", "gold")), match.Terms{}},
		"both":     {FitClaim(RequestingLabel("tier", "gold")), OnNode(match.Terms{}, NodeIn("a"))},
		"nothing":  {FitClaim(Requesting("1Ti")), match.Terms{}},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = index.Find(c.claim, c.terms) }), name)
	}
}

// X6: neither finding nor explaining modifies a volume, a claim or what goes with it.
func TestIndexModifiesNothing(t *testing.T) {
	seed := SeedOf(t)
	for n := range Worlds(300) {
		x := newIndexed(seed, uint64(n), 10)
		x.load(10)
		request, terms := x.request()
		before := Copied(request)
		_, _ = x.index.Find(request.Claim, terms)
		_, _ = x.index.Summary(request.Claim, terms)
		x.index.Load(slices.Collect(maps.Values(x.volumes))...)
		RequireUnmodified(t, before, request)
	}
}
