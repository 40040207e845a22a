package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/match"
)

func TestProvisionMakesADirectoryForEverybody(t *testing.T) {
	p := newPlace(t)
	volume, err := p.Provision(t.Context(), request("pvc-1"))
	require.NoError(t, err)
	want := hostPath("pvc-1", filepath.Join(p.root, "pvc-1"))
	want.Spec.HostPath.Type = new(corev1.HostPathDirectory)
	assert.Equal(t, want, volume)
	info, err := os.Stat(volume.Spec.HostPath.Path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o777, info.Mode())
}

func TestProvisionAgainFindsWhatItMade(t *testing.T) {
	p := newPlace(t)
	first, err := p.Provision(t.Context(), request("pvc-1"))
	require.NoError(t, err)
	p.write("root/pvc-1/data")
	before := p.contents()
	again, err := p.Provision(t.Context(), request("pvc-1"))
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Equal(t, before, p.contents())
}

func TestProvisionOnANode(t *testing.T) {
	p := newPlace(t)
	volume, err := p.Provision(t.Context(), request("pvc-1", func(r *hooks.ProvisionRequest) { r.Node = "node-1" }))
	require.NoError(t, err)
	for node, accepted := range map[string]bool{"node-1": true, "node-2": false} {
		terms := match.Terms{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelHostname: node}}}}
		claim := request("").Claim
		volume.Spec.Capacity, volume.Spec.AccessModes = corev1.ResourceList(claim.Spec.Resources.Requests), claim.Spec.AccessModes
		mismatches, err := match.Check(claim, volume, terms)
		require.NoError(t, err)
		assert.Equal(t, accepted, len(mismatches) == 0, "%s: %s", node, mismatches)
	}
}

func TestProvisionRefusesWhatADirectoryIsNot(t *testing.T) {
	for name, change := range map[string]func(*hooks.ProvisionRequest){
		"a block device": func(r *hooks.ProvisionRequest) { r.Claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"labels":         func(r *hooks.ProvisionRequest) { r.Claim.Spec.Selector = &metav1.LabelSelector{} },
		"a snapshot":     func(r *hooks.ProvisionRequest) { r.Claim.Spec.DataSource = &corev1.TypedLocalObjectReference{} },
		"any data":       func(r *hooks.ProvisionRequest) { r.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{} },
		"mount options":  func(r *hooks.ProvisionRequest) { r.Class.MountOptions = []string{"ro"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.contents()
			_, err := p.Provision(t.Context(), request("pvc-1", change))
			requireRefused(t, err)
			assert.Equal(t, before, p.contents())
		})
	}
}

// odd are names that files may have and that are easily overlooked.
var odd = []string{".hidden", "..two", "a/b/.c", "-rf", "with\nnewline", `back\slash`, "not\xffutf8", " "}

func TestDeleteRemovesTheDirectory(t *testing.T) {
	for name, volume := range map[string]func(place) *corev1.PersistentVolume{
		"R3 by its path":               func(p place) *corev1.PersistentVolume { return hostPath("pvc-1", filepath.Join(p.root, "pvc-1")) },
		"P2 by its name, never stored": func(place) *corev1.PersistentVolume { return sourceless("pvc-1") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.contents()
			for _, file := range odd {
				p.write(filepath.Join("root/pvc-1", file))
			}
			require.NoError(t, p.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume(p)}))
			assert.Equal(t, before, p.contents())
			require.NoError(t, p.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume(p)}), "Rh: it is gone, which is success")
			assert.Equal(t, before, p.contents())
		})
	}
}

func TestRecycleKeepsTheDirectory(t *testing.T) {
	p := newPlace(t)
	volume, err := p.Provision(t.Context(), request("pvc-1"))
	require.NoError(t, err)
	before := p.contents()
	for _, file := range odd {
		p.write(filepath.Join("root/pvc-1", file))
	}
	for range 2 { // Rh: it is idempotent
		require.NoError(t, p.Recycle(t.Context(), hooks.ReclaimRequest{Volume: volume}))
		assert.Equal(t, before, p.contents())
	}
}

func TestRecycleWantsADirectory(t *testing.T) {
	p := newPlace(t)
	before := p.contents()
	assert.ErrorIs(t, p.Recycle(t.Context(), hooks.ReclaimRequest{Volume: sourceless("pvc-1")}), os.ErrNotExist, "another claim could not use the volume")
	assert.Equal(t, before, p.contents())
}

// A root that is missing may be a disk that is not mounted. Its directories exist.
func TestAMissingRootIsAnError(t *testing.T) {
	for name, call := range (place{directories: directories{filepath.Join(t.TempDir(), "root")}}).calls() {
		assert.ErrorIs(t, call(t.Context(), sourceless("pvc-1")), os.ErrNotExist, name)
	}
}

func TestNothingIsDoneWhenTheTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := newPlace(t)
	p.write("root/pvc-1/data")
	before := p.contents()
	for name, call := range p.calls() {
		assert.ErrorIs(t, call(ctx, sourceless("pvc-1")), context.Canceled, name)
		assert.Equal(t, before, p.contents(), name)
	}
}

// expiring is a context that ends after it was asked so many times.
type expiring struct {
	context.Context
	left int
}

func (c *expiring) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestWorkStopsWhenTheTimeIsOverAndGoesOnLater(t *testing.T) {
	p := newPlace(t)
	before := p.contents()
	for _, file := range odd {
		p.write(filepath.Join("root/pvc-1", file))
	}
	calls, left := 0, len(odd)
	for err := context.DeadlineExceeded; err != nil; calls++ {
		require.Less(t, calls, 2*len(odd))
		err = p.Delete(&expiring{t.Context(), 2}, hooks.ReclaimRequest{Volume: sourceless("pvc-1")})
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			entries, err := os.ReadDir(p.path("pvc-1"))
			require.NoError(t, err)
			require.Len(t, entries, left-1, "one entry a call")
			left--
		}
	}
	assert.Equal(t, len(odd), calls)
	assert.Equal(t, before, p.contents())
}
