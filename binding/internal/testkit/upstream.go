package testkit

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Upstream answers a request as kube-controller-manager (no node) or kube-scheduler (a node) would, with
// FindMatchingVolume. Its flags take back what differs on purpose, one rule at a time.
type Upstream struct {
	match.Request
	Helpers
	ByModes       bool // call it for the volumes of one set of access modes after the other, narrowest first
	BySize        bool // sets of one size together
	SetAsideFirst bool // call it for what is pre-bound or bound to the claim before anything else
}

// Helpers has the functions of k8s.io/component-helpers/storage/volume that Upstream calls. Tests pass them in: that package
// imports client-go, and no package of this module may.
type Helpers struct {
	FindMatchingVolume func(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, node *corev1.Node,
		excluded map[string]*corev1.PersistentVolume, delayed, attributesClasses bool) (*corev1.PersistentVolume, error)
	IsVolumeBoundToClaim func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) bool
	CheckAccessModes     func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) bool
}

// Answer returns the volume that upstream would choose; nil if none.
func (u Upstream) Answer(t *testing.T) *corev1.PersistentVolume {
	if u.SetAsideFirst {
		for _, volume := range u.Volumes {
			if u.SetAside(volume) {
				if found := u.call(t, volume); found != nil {
					return found
				}
			}
		}
	}
	if u.Node != nil || !u.ByModes {
		return u.call(t, u.Volumes...)
	}
	for _, group := range u.groups() {
		if found := u.call(t, group...); found != nil {
			return found
		}
	}
	return nil
}

// SetAside reports whether the volume is pre-bound or bound to the claim.
func (u Upstream) SetAside(volume *corev1.PersistentVolume) bool {
	return u.IsVolumeBoundToClaim(volume, u.Claim)
}

// BelongsToAnother reports whether the volume has no claimRef and another claim is Bound to it (M2).
func (u Upstream) BelongsToAnother(volume *corev1.PersistentVolume) bool {
	owners := u.Owners(volume.Name)
	return volume.Spec.ClaimRef == nil && len(owners) > 0 && !slices.Equal(owners, []obj.Key{obj.KeyOf(u.Claim)})
}

// CompareSetAside puts volumes that are bound to the claim first, then pre-bound ones by waste and name, then the rest as it comes.
func (u Upstream) CompareSetAside(a, b *corev1.PersistentVolume) int {
	if !u.SetAside(a) || !u.SetAside(b) {
		return u.rank(a) - u.rank(b)
	}
	modes := cmp.Compare(KnownModes(a).Len(), KnownModes(b).Len())
	capacity := cmp.Compare(CapacityOf(a), CapacityOf(b))
	if u.Node != nil {
		modes, capacity = capacity, modes
	}
	return cmp.Or(u.rank(a)-u.rank(b), modes, capacity, cmp.Compare(a.Name, b.Name))
}

// CompareEquals orders volumes that upstream has no order for, as Find does.
func (u Upstream) CompareEquals(a, b *corev1.PersistentVolume) int {
	if u.SetAside(a) || u.SetAside(b) {
		return u.CompareSetAside(a, b)
	}
	byName := cmp.Compare(a.Name, b.Name)
	if u.Node == nil {
		return byName
	}
	return cmp.Or(cmp.Compare(KnownModes(a).Len(), KnownModes(b).Len()), byName)
}

func (u Upstream) rank(volume *corev1.PersistentVolume) int {
	switch {
	case !u.SetAside(volume):
		return 2
	case volume.Spec.ClaimRef.UID == "":
		return 1
	}
	return 0
}

func (u Upstream) call(t *testing.T, volumes ...*corev1.PersistentVolume) *corev1.PersistentVolume {
	delayed := u.Class != nil && *u.Class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	found, err := u.FindMatchingVolume(u.Claim, volumes, u.Node, nil, delayed, true)
	require.NoError(t, err)
	return found
}

// groups returns the volumes that have the modes asked for, by their set of modes, the narrowest first.
// Sets of one size come in no particular order upstream.
func (u Upstream) groups() [][]*corev1.PersistentVolume {
	groups := map[accessmode.Set][]*corev1.PersistentVolume{}
	for _, volume := range u.Volumes {
		if u.CheckAccessModes(u.Claim, volume) {
			group := KnownModes(volume)
			if u.BySize {
				group = accessmode.Set(group.Len())
			}
			groups[group] = append(groups[group], volume)
		}
	}
	width := func(group accessmode.Set) int { return KnownModes(groups[group][0]).Len() }
	order := slices.SortedFunc(maps.Keys(groups), func(a, b accessmode.Set) int {
		return cmp.Or(cmp.Compare(width(a), width(b)), cmp.Compare(a, b))
	})
	var sorted [][]*corev1.PersistentVolume
	for _, group := range order {
		sorted = append(sorted, groups[group])
	}
	return sorted
}

// KnownModes returns the access modes of a volume, but for unknown ones.
func KnownModes(volume *corev1.PersistentVolume) accessmode.Set {
	var all accessmode.Set
	for _, mode := range volume.Spec.AccessModes {
		one, _ := accessmode.Of(mode)
		all |= one
	}
	return all
}

// CapacityOf returns the capacity of a volume in thousandths of a byte.
func CapacityOf(volume *corev1.PersistentVolume) int64 {
	return volume.Spec.Capacity.Storage().MilliValue()
}

// Without returns the volumes that drop does not select.
func Without(volumes []*corev1.PersistentVolume, drop func(*corev1.PersistentVolume) bool) []*corev1.PersistentVolume {
	return slices.DeleteFunc(slices.Clone(volumes), drop)
}

// WasPending marks the copies of MadeAvailable.
const WasPending = "WasPending"

// MadeAvailable returns the volumes with those that are Pending, or have no phase yet, in copies that are Available.
func MadeAvailable(volumes []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	volumes = slices.Clone(volumes)
	for i, volume := range volumes {
		if volume.Status.Phase == corev1.VolumePending || volume.Status.Phase == "" {
			available := *volume
			available.Status.Phase = corev1.VolumeAvailable
			available.Status.Reason = WasPending
			volumes[i] = &available
		}
	}
	return volumes
}
