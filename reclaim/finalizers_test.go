package reclaim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	inTree   = "kubernetes.io/pv-controller"
	external = "external-provisioner.volume.kubernetes.io/finalizer"
	foreign  = "example.com/backup"
)

// change is what becomes of the two finalizers; everything else stays.
type change struct{ adds, drops []string }

var nothing = change{}

var finalizerTable = map[string]map[corev1.PersistentVolumeReclaimPolicy]change{
	"nobody":              whateverThePolicy(nothing),
	"empty":               whateverThePolicy(nothing),
	"external":            whateverThePolicy(nothing),
	"in-tree, migrated":   whateverThePolicy(change{drops: []string{inTree}}),
	"in-tree":             notMigrated,
	"in-tree, registered": notMigrated,
	"registered": {
		"Delete":  {adds: []string{inTree}},
		"Retain":  {drops: []string{inTree}},
		"Recycle": {drops: []string{inTree}},
		"":        nothing,
		"Shred":   nothing,
	},
}

var notMigrated = map[corev1.PersistentVolumeReclaimPolicy]change{
	"Delete":  {adds: []string{inTree}, drops: []string{external}},
	"Retain":  {drops: []string{inTree, external}},
	"Recycle": {drops: []string{inTree, external}},
	"":        {drops: []string{external}},
	"Shred":   {drops: []string{external}},
}

// deletedTable is the same for volumes that are being deleted: nothing is added, and where the storage stays, what waits
// for its end goes.
var deletedTable = map[string]map[corev1.PersistentVolumeReclaimPolicy]change{
	"nobody":              notOurs,
	"empty":               notOurs,
	"external":            notOurs,
	"in-tree, migrated":   whateverThePolicy(change{drops: []string{inTree}}),
	"in-tree":             keptAnyway,
	"in-tree, registered": keptAnyway,
	"registered":          keptAnyway,
}

var keptAnyway = map[corev1.PersistentVolumeReclaimPolicy]change{
	"Retain":  {drops: []string{inTree, external}},
	"Recycle": {drops: []string{inTree, external}},
}

var notOurs = map[corev1.PersistentVolumeReclaimPolicy]change{
	"Retain":  {drops: []string{inTree}},
	"Recycle": {drops: []string{inTree}},
}

func whateverThePolicy(same change) map[corev1.PersistentVolumeReclaimPolicy]change {
	return map[corev1.PersistentVolumeReclaimPolicy]change{
		"Delete": same, "Retain": same, "Recycle": same, "": same, "Shred": same,
	}
}

func (c change) apply(finalizers []string) []string {
	var out []string
	for _, finalizer := range finalizers {
		if !slices.Contains(c.drops, finalizer) {
			out = append(out, finalizer)
		}
	}
	for _, finalizer := range c.adds {
		if !slices.Contains(out, finalizer) {
			out = append(out, finalizer)
		}
	}
	return out
}

var finalizerLists = [][]string{
	nil,
	{inTree},
	{external},
	{VolumeProtection, foreign},
	{inTree, external},
	{foreign, external, VolumeProtection, inTree},
	{inTree, foreign, inTree},
}

func TestFinalizers(t *testing.T) {
	for provisioner, row := range finalizerTable {
		for policy, cell := range row {
			t.Run("R6 by "+provisioner+", policy "+string(policy), func(t *testing.T) {
				for _, list := range finalizerLists {
					volume := volumeOf(provisioner, "csi", policy)
					volume.Finalizers = slices.Clone(list)
					before := volume.DeepCopy()

					got := Finalizers(volume, options)
					assert.True(t, slices.Equal(cell.apply(list), got), "%v from %v", got, list)
					assert.Equal(t, before, volume, "X6")

					volume.Finalizers = got
					assert.Equal(t, got, Finalizers(volume, options), "X8 a second look changes nothing")
				}
			})
		}
	}
}

func TestFinalizersOfVolumeBeingDeleted(t *testing.T) {
	for provisioner, row := range finalizerTable {
		for policy := range row {
			for _, list := range finalizerLists {
				volume := volumeOf(provisioner, "csi", policy)
				volume.Finalizers = slices.Clone(list)
				volume.DeletionTimestamp = &metav1.Time{}
				want := deletedTable[provisioner][policy].apply(list)
				assert.True(t, slices.Equal(want, Finalizers(volume, options)), "R6 R3 by %s, policy %s", provisioner, policy)
			}
		}
	}
}

// R8: what keeps a volume while its storage may be deleted stays, whatever its policy and provisioner are by now.
func TestFinalizersOfVolumeAnnounced(t *testing.T) {
	for provisioner, row := range finalizerTable {
		for policy := range row {
			for done, kept := range map[bool]bool{false: true, true: slices.Equal(deletedTable[provisioner][policy].apply([]string{inTree, external}), []string{inTree, external})} {
				volume := volumeOf(provisioner, "csi", policy)
				volume.Finalizers, volume.DeletionTimestamp = []string{inTree, external}, &metav1.Time{}
				Announce(volume, Announcement{By: "another", Token: 5, Done: done})
				assert.Equal(t, kept, slices.Equal([]string{inTree, external}, Finalizers(volume, options)), "R8 R6 by %s, policy %s, done: %t", provisioner, policy, done)
			}
		}
	}
}

func TestFinalizersAreTheCallers(t *testing.T) {
	for provisioner := range provisioners {
		volume := volumeOf(provisioner, "csi", "Delete")
		volume.Finalizers = append(make([]string, 0, 8), foreign, inTree, external)
		before := volume.DeepCopy()

		got := Finalizers(volume, options)
		for i := range got {
			got[i] = "overwritten"
		}
		_ = append(got, "appended")
		assert.Equal(t, before, volume, "X6 by %s", provisioner)
		assert.NotContains(t, volume.Finalizers[:4], "appended", "X6 by %s", provisioner)
	}
}

// A migrated volume's own driver needs its finalizer, but adds it itself.
func TestExternalFinalizerIsNeverAdded(t *testing.T) {
	for provisioner, row := range finalizerTable {
		for policy := range row {
			assert.NotContains(t, Finalizers(volumeOf(provisioner, "csi", policy), options), external, "R6")
		}
	}
}

func TestFinalizersUnderZeroOptions(t *testing.T) {
	for provisioner, want := range map[string][]string{
		"nobody":            nil,
		"external":          nil,
		"registered":        nil, // nobody is
		"in-tree":           {inTree},
		"in-tree, migrated": {inTree}, // nothing is
	} {
		assert.Equal(t, want, Finalizers(volumeOf(provisioner, "csi", "Delete"), Options{}), "R6 by %s", provisioner)
	}
}
