package index_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// indexed is an Index, and beside it plain maps that say what should be in it.
type indexed struct {
	World
	names    int
	index    *index.Index
	volumes  map[string]*corev1.PersistentVolume
	owned    map[obj.Key]string // the volume of a claim
	reserved map[string]obj.Key
	version  int
}

func newIndexed(seed, n uint64, names int) *indexed {
	return &indexed{
		World: NewWorld(rand.NewPCG(seed, n)), names: names, index: &index.Index{},
		volumes: map[string]*corev1.PersistentVolume{}, owned: map[obj.Key]string{}, reserved: map[string]obj.Key{},
	}
}

func (x *indexed) name() string { return fmt.Sprintf("pv-%d", x.IntN(x.names)) }

// oddSize is a size that is no whole number of bytes in 64 bits, or near one.
func (x *indexed) oddSize() corev1.ResourceList {
	return Storage(Pick(x.World, "1m", "1", "1500m", "2", "2147483648", "9E", "10E", "11E"))
}

// newVolume is like a volume of the oracle's world, with more labels and odd sizes.
func (x *indexed) newVolume(name string) *corev1.PersistentVolume {
	volume := x.Volume(name)
	x.version++
	volume.ResourceVersion = strconv.Itoa(x.version)
	if x.Rarely(8) {
		volume.Spec.Capacity = x.oddSize()
	}
	if x.Rarely(8) {
		Affine(Term(Require1(Pick(x.World, "rank", "host"), corev1.NodeSelectorOpIn, Pick(x.World, "7", "8"), "9")))(volume)
	}
	if x.Rarely(8) {
		in := func(key string, values ...string) corev1.NodeSelectorRequirement {
			return Require1(key, corev1.NodeSelectorOpIn, values...)
		}
		zone, rank := in("zone", Pick(x.World, "a", "b")), in("rank", Pick(x.World, "7", "8"), Pick(x.World, "7", "9", "no value!"))
		Affine(Pick(x.World, []corev1.NodeSelectorTerm{Term(zone, rank)}, []corev1.NodeSelectorTerm{Term(zone), Term(rank)},
			[]corev1.NodeSelectorTerm{Term(rank), Term(in("rank", "9"))}, []corev1.NodeSelectorTerm{Term(zone, rank), Term(in("zone", "b"))})...)(volume)
	}
	if volume.Labels != nil && x.Rarely(2) {
		volume.Labels = map[string]string{"tier": volume.Labels["tier"], "disk": Pick(x.World, "ssd", "hdd", "")}
	}
	return volume
}

func (x *indexed) load(count int) {
	for i := range count {
		volume := x.newVolume(fmt.Sprintf("pv-%d", i))
		x.volumes[volume.Name] = volume
	}
	x.index.Load(slices.Collect(maps.Values(x.volumes))...)
}

// someClaims are those that the volumes of the world know, and another, in order. someClaim is one of them.
func (x *indexed) someClaims() []obj.Key {
	return []obj.Key{obj.ClaimKey("default", "data"), obj.ClaimKey("default", "logs"), obj.ClaimKey("other", "data")}
}

func (x *indexed) someClaim() obj.Key { return Pick(x.World, x.someClaims()...) }

func (x *indexed) owners(volume string) (owners []obj.Key) {
	for _, claim := range x.someClaims() {
		if x.owned[claim] == volume {
			owners = append(owners, claim)
		}
	}
	if claim, ok := x.reserved[volume]; ok && len(owners) == 0 {
		return []obj.Key{claim}
	}
	return owners
}

// change makes one random change to both.
func (x *indexed) change(t *testing.T) {
	name, claim := x.name(), x.someClaim()
	switch x.IntN(8) {
	case 0, 1, 2:
		volume := x.newVolume(name)
		x.index.Set(volume)
		x.volumes[name] = volume
		if volume.Spec.ClaimRef != nil {
			delete(x.reserved, name)
		}
	case 3:
		x.index.Delete(name)
		delete(x.volumes, name)
		delete(x.reserved, name)
	case 4, 5:
		x.reserve(t, name, claim)
	case 6:
		x.index.Release(name, claim)
		if x.reserved[name] == claim {
			delete(x.reserved, name)
		}
	case 7:
		if x.Rarely(3) {
			x.index.DeleteClaim(claim)
			delete(x.owned, claim)
			return
		}
		newer := Owning(claim, name)
		if x.owned[claim] = name; x.Rarely(4) {
			delete(x.owned, claim)
			newer.Status.Phase = Pick(x.World, corev1.ClaimPending, corev1.ClaimLost)
		}
		x.index.SetClaim(newer)
	}
}

func (x *indexed) reserve(t *testing.T, name string, claim obj.Key) {
	version, known := "0", x.volumes[name]
	if known != nil && !x.Rarely(4) {
		version = known.ResourceVersion
	}
	want := known != nil && version == known.ResourceVersion
	switch {
	case !want:
	case known.Spec.ClaimRef != nil:
		want = obj.ClaimKey(known.Spec.ClaimRef.Namespace, known.Spec.ClaimRef.Name) == claim
	case len(x.owners(name)) == 0:
		x.reserved[name] = claim
	default:
		want = slices.Equal(x.owners(name), []obj.Key{claim})
	}
	require.Equal(t, want, x.index.Reserve(name, version, claim), "reserve %s for %s", name, claim)
}

// request is a random one for the volumes. The list needs the owners that the index knows itself.
func (x *indexed) request() (request match.Request, forIndex match.Terms) {
	request.Claim = x.Claim()
	if x.Rarely(3) {
		request.Claim.Spec.Resources.Requests = Pick(x.World, x.oddSize(), Storage("2.5Gi"), Storage("4Gi"))
	}
	if x.Rarely(4) {
		request.Claim.Spec.Selector = x.selectorOfSome()
	}
	if x.Rarely(2) {
		request.Node = x.Node()
	}
	if !x.Rarely(3) {
		immediate := storagev1.VolumeBindingImmediate
		request.Class = ClassWith(new(Pick(x.World, immediate, immediate, storagev1.VolumeBindingWaitForFirstConsumer)))
	}
	forIndex = request.Terms
	if x.Rarely(8) {
		foreign, by := x.name(), []obj.Key{x.someClaim()}
		forIndex.Owners = func(volume string) []obj.Key {
			if volume == foreign {
				return by
			}
			return nil
		}
	}
	request.Owners = func(volume string) []obj.Key {
		if owners := x.owners(volume); len(owners) > 0 || forIndex.Owners == nil {
			return owners
		}
		return forIndex.Owners(volume)
	}
	request.Volumes = slices.Collect(maps.Values(x.volumes))
	return request, forIndex
}

func (x *indexed) selectorOfSome() *metav1.LabelSelector {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	return Pick(x.World,
		&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold", "disk": "ssd"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"disk": ""}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("tier", "gold", "tin", "gold")}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("tier", "tin"), in("disk", "ssd", "hdd")}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"no key!": "such"}},
	)
}

// requireAgreement compares the answers of the index with those of the list.
func (x *indexed) requireAgreement(t *testing.T) {
	request, forIndex := x.request()
	want, wantErr := match.Find(request)
	got, err := x.index.Find(request.Claim, forIndex)
	require.Equal(t, wantErr, err)
	if want.Volume != got.Volume {
		require.Equal(t, NameOf(want.Volume), NameOf(got.Volume), "M13, M14: %v", describe(request))
	}
	require.Equal(t, want.Rejected, got.Rejected, "M12")
	report, wantErr := match.Explain(request)
	summary, err := x.index.Summary(request.Claim, forIndex)
	require.Equal(t, wantErr, err)
	if err == nil && !reflect.DeepEqual(summary, report.Summary()) {
		require.Equal(t, report.Summary(), summary, "E2, M14: %v", describe(request))
	}
	require.Equal(t, len(x.volumes), x.index.Len())
	name := x.name()
	require.Equal(t, x.owners(name), x.index.Owners(name))
}

func describe(request match.Request) string {
	report, err := match.Explain(request)
	text := fmt.Sprintf("%v %v\n%v", report, err, request.Claim.Spec)
	if len(report.Verdicts) > 50 {
		return text
	}
	for _, v := range report.Verdicts {
		text += fmt.Sprintf("\n%s %v %v", v.Volume.Name, v.Volume.Spec, v.Mismatches)
	}
	return text
}
