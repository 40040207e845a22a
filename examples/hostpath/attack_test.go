package main

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// A volume may say anything of where it is. Each hook refuses all but the volume's own directory, for good.
func TestPathsThatAreNotTheVolumesOwn(t *testing.T) {
	for name, path := range map[string]func(place) string{
		"the root":                       func(p place) string { return p.root },
		"the root with a slash":          func(p place) string { return p.root + "/" },
		"the root with a dot":            func(p place) string { return p.root + "/." },
		"what the root is in":            func(p place) string { return p.base },
		"up":                             func(p place) string { return p.root + "/.." },
		"up and aside":                   func(p place) string { return p.root + "/../outside" },
		"up from the volume":             func(p place) string { return p.root + "/pvc-1/.." },
		"up from the volume and down":    func(p place) string { return p.root + "/pvc-1/../pvc-other" },
		"up from it, out and its name":   func(p place) string { return p.root + "/pvc-1/../../outside/pvc-1" },
		"outside":                        func(p place) string { return p.base + "/outside" },
		"outside, of its name":           func(p place) string { return p.base + "/outside/pvc-1" },
		"a root that begins like ours":   func(p place) string { return p.root + "-1/pvc-1" },
		"another volume":                 func(p place) string { return p.root + "/pvc-other" },
		"within the volume":              func(p place) string { return p.root + "/pvc-1/sub" },
		"its own, written otherwise":     func(p place) string { return p.root + "/./pvc-1" },
		"its own with a slash":           func(p place) string { return p.root + "/pvc-1/" },
		"its own by way of up":           func(p place) string { return p.root + "/../root/pvc-1" },
		"its own by way of a link":       func(p place) string { return p.base + "/way/pvc-1" },
		"relative to somewhere":          func(place) string { return "pvc-1" },
		"relative and up":                func(place) string { return "../outside" },
		"nothing":                        func(place) string { return "" },
		"here":                           func(place) string { return "." },
		"its own and what ends a string": func(p place) string { return p.root + "/pvc-1\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.write("root/pvc-1/sub/data")
			p.link("root", "way")
			before := p.contents()
			for hook, call := range p.calls() {
				requireRefused(t, call(t.Context(), hostPath("pvc-1", path(p))))
				assert.Equal(t, before, p.contents(), hook)
			}
		})
	}
}

func TestNamesThatAreNoDirectorys(t *testing.T) {
	for _, name := range []string{"", ".", "..", "/", "../outside", "pvc-other/..", "pvc-other/../..", "./pvc-other", "pvc-other/", "a/b", "/pvc-other", "..//outside"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.contents()
			for hook, call := range p.calls() {
				requireRefused(t, call(t.Context(), sourceless(name)))
				requireRefused(t, call(t.Context(), hostPath(name, filepath.Join(p.root, name))))
				requireRefused(t, call(t.Context(), hostPath(name, p.root+"/"+name)))
				assert.Equal(t, before, p.contents(), hook)
			}
		})
	}
}

func TestVolumesThatAreNoDirectory(t *testing.T) {
	p := newPlace(t)
	p.write("root/pvc-1/data")
	before := p.contents()
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"nfs":   {NFS: &corev1.NFSVolumeSource{Path: p.path("pvc-1")}},
		"local": {Local: &corev1.LocalVolumeSource{Path: p.path("pvc-1")}},
	} {
		volume := sourceless("pvc-1")
		volume.Spec.PersistentVolumeSource = source
		for hook, call := range p.calls() {
			requireRefused(t, call(t.Context(), volume))
			assert.Equal(t, before, p.contents(), "%s %s", name, hook)
		}
	}
}

// What stands in the place of the volume's directory is left alone, and so is what it points to. That can be
// repaired without a change of the volume, so it is not hooks.Refused.
func TestLinksInPlaceOfTheDirectory(t *testing.T) {
	for name, put := range map[string]func(place){
		"out of the root":           func(p place) { p.link(p.base+"/outside", "root/pvc-1") },
		"out of the root, relative": func(p place) { p.link("../outside", "root/pvc-1") },
		"to another volume":         func(p place) { p.link("pvc-other", "root/pvc-1") },
		"to another volume, round":  func(p place) { p.link("../root/pvc-other", "root/pvc-1") },
		"to the root":               func(p place) { p.link(".", "root/pvc-1") },
		"to what the root is in":    func(p place) { p.link("..", "root/pvc-1") },
		"to nothing":                func(p place) { p.link("no-such-thing", "root/pvc-1") },
		"to itself":                 func(p place) { p.link("pvc-1", "root/pvc-1") },
		"by way of another link":    func(p place) { p.link("pvc-2", "root/pvc-1"); p.link("../outside", "root/pvc-2") },
		"a file":                    func(p place) { p.write("root/pvc-1") },
		"another name of a file":    func(p place) { require.NoError(p.t, os.Link(p.base+"/canary", p.path("pvc-1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			put(p)
			before := p.contents()
			for hook, call := range p.calls() {
				assert.ErrorContains(t, call(t.Context(), hostPath("pvc-1", p.path("pvc-1"))), "is no directory", hook)
				assert.Equal(t, before, p.contents(), hook)
			}
		})
	}
}

// A pod can write links into its volume. They go, and what they point to stays.
func TestLinksWithinTheDirectory(t *testing.T) {
	fill := func(p place) {
		p.write("root/pvc-1/sub/data")
		for at, target := range map[string]string{
			"abs": p.base + "/outside", "rel": "../../outside", "file": p.base + "/canary", "other": "../pvc-other", "up": "..", "self": ".",
			"sub/abs": p.base + "/outside", "sub/other": "../../pvc-other", "sub/loop": "..", ".dot": p.base, "dangling": "no-such-thing",
		} {
			p.link(target, "root/pvc-1/"+at)
		}
		require.NoError(p.t, os.Link(p.base+"/outside/canary", p.root+"/pvc-1/hard"))
	}
	for _, hook := range []string{"Delete", "Recycle"} {
		t.Run(hook, func(t *testing.T) {
			p := newPlace(t)
			before := p.contents()
			fill(p)
			require.NoError(t, p.calls()[hook](t.Context(), sourceless("pvc-1")))
			after := p.contents()
			assert.Equal(t, before, without(after, "root/pvc-1"))
			_, kept := after["root/pvc-1"]
			assert.Equal(t, hook == "Recycle", kept)
			assert.LessOrEqual(t, len(after), len(before)+1, "it is empty")
		})
	}
}

// Somebody swaps the directory for a link to another volume, over and over, while it is opened. The number
// of tries is such that an open without the check for that fails nearly every time.
func TestLinksSwappedInMeanwhile(t *testing.T) {
	p := newPlace(t)
	p.link("pvc-other", "root/link")
	p.write("root/dir/data")
	var stop atomic.Bool
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for !stop.Load() {
			for _, name := range []string{"dir", "claimRef"} {
				_ = os.Rename(p.path(name), p.path("pvc-1"))
				_ = os.Rename(p.path("pvc-1"), p.path(name))
			}
		}
	})
	defer swapping.Wait()
	defer stop.Store(true)
	root, err := os.OpenRoot(p.root)
	require.NoError(t, err)
	defer root.Close()
	other, err := root.Stat("pvc-other")
	require.NoError(t, err)
	tries := 150_000
	if testing.Short() {
		tries = 15_000
	}
	for range tries {
		dir, err := open(root, "pvc-1")
		if err != nil {
			continue // it was not there, or a link
		}
		opened, err := dir.Stat(".")
		require.NoError(t, err)
		require.NoError(t, dir.Close())
		require.False(t, os.SameFile(other, opened), "it opened another volume")
	}
}
