package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
)

// place is a directory with the root in it, and beside the root what must never be touched.
type place struct {
	directories
	t    *testing.T
	base string
}

func newPlace(t *testing.T) place {
	base := t.TempDir()
	p := place{directories{filepath.Join(base, "root")}, t, base}
	for _, name := range []string{"canary", "outside/canary", "outside/pvc-1/canary", "root-1/pvc-1/canary", "root/canary", "root/pvc-other/canary"} {
		p.write(name)
	}
	return p
}

// write makes a file, and the directories on the way to it.
func (p place) write(name string) {
	name = filepath.Join(p.base, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(p.t, os.WriteFile(name, []byte(name), 0o644))
}

func (p place) link(target, name string) {
	require.NoError(p.t, os.Symlink(target, filepath.Join(p.base, name)))
}

// contents are all files and directories with their modes, what links say, and what is in files.
func (p place) contents() map[string]string {
	found := map[string]string{}
	require.NoError(p.t, filepath.WalkDir(p.base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := "", error(nil)
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			text, err = os.Readlink(name)
		case 0:
			var data []byte
			data, err = os.ReadFile(name)
			text = string(data)
		}
		below, _ := filepath.Rel(p.base, name)
		found[below] = fmt.Sprintf("%s %s", info.Mode(), text)
		return err
	}))
	return found
}

// without are the contents but for a file or directory and what is in it.
func without(contents map[string]string, unwanted string) map[string]string {
	left := map[string]string{}
	for name, content := range contents {
		if below, err := filepath.Rel(unwanted, name); err != nil || !filepath.IsLocal(below) {
			left[name] = content
		}
	}
	return left
}

// hostPath is a volume that says it is at a path.
func hostPath(name, path string) *corev1.PersistentVolume {
	volume := sourceless(name)
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path}
	return volume
}

// sourceless is a volume that does not say where it is.
func sourceless(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func request(name string, changes ...func(*hooks.ProvisionRequest)) hooks.ProvisionRequest {
	r := hooks.ProvisionRequest{
		Claim:  bindingtest.Claim("default", "data", "1Gi"),
		Class:  &storagev1.StorageClass{},
		Volume: sourceless(name),
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// calls are the three hooks, each on one volume.
func (p place) calls() map[string]func(context.Context, *corev1.PersistentVolume) error {
	reclaiming := func(hook func(context.Context, hooks.ReclaimRequest) error) func(context.Context, *corev1.PersistentVolume) error {
		return func(ctx context.Context, volume *corev1.PersistentVolume) error {
			return hook(ctx, hooks.ReclaimRequest{Volume: volume})
		}
	}
	return map[string]func(context.Context, *corev1.PersistentVolume) error{
		"Delete":  reclaiming(p.Delete),
		"Recycle": reclaiming(p.Recycle),
		"Provision": func(ctx context.Context, volume *corev1.PersistentVolume) error {
			r := request(volume.Name)
			r.Volume = volume
			_, err := p.Provision(ctx, r)
			return err
		},
	}
}

func requireRefused(t *testing.T, err error) {
	t.Helper()
	var refused *hooks.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, hooks.Refused, refused.Meaning)
}
