package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/reclaim"
)

var (
	_ binding.Provisioner = directories{}
	_ binding.Deleter     = directories{}
	_ binding.Recycler    = directories{}
)

// directories keeps each volume in a directory of the volume's name right below a root, on the machine that it
// runs on. Capacity is what the volume declares: nothing keeps a pod from writing more.
//
// A pod may run as any user, so everybody may write to the directories; who gets that far, the mode of the root
// says. Links are never followed; a file system that is mounted below the root counts as part of it.
type directories struct {
	root string // absolute
}

// Provision makes the directory of the claim. It bears the claim's UID in its name, so asked twice it is there.
func (d directories) Provision(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
	volume := request.Volume
	if problem := unsupported(request); problem != "" {
		return nil, refuse("%s", problem)
	}
	err := d.at(ctx, volume, func(root *os.Root, name string) error {
		if err := root.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		dir, err := open(root, name)
		if err != nil {
			return err
		}
		defer dir.Close()
		return dir.Chmod(".", 0o777) // which Mkdir leaves to the umask
	})
	if err != nil {
		return nil, err
	}
	// The type has a kubelet refuse to start a pod where the directory is missing, and not make an empty one.
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: d.path(volume.Name), Type: new(corev1.HostPathDirectory)}
	volume.Spec.NodeAffinity = only(request.Node)
	return volume, nil
}

// Delete removes the directory of the volume, and is done if there is none.
func (d directories) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	return d.at(ctx, volume, func(root *os.Root, name string) error {
		err := empty(ctx, root, name)
		if err == nil {
			err = root.Remove(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// Recycle empties the directory of the volume.
func (d directories) Recycle(ctx context.Context, volume *corev1.PersistentVolume) error {
	return d.at(ctx, volume, func(root *os.Root, name string) error { return empty(ctx, root, name) })
}

// at does something to the directory that is the volume's. The root is opened each time, so that it is an error
// if it is missing, and does not mean that its directories are gone.
func (d directories) at(ctx context.Context, volume *corev1.PersistentVolume, do func(root *os.Root, name string) error) error {
	if err := d.check(volume); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, volume.Name)
}

// check refuses every volume but those that say they are where theirs would be, or do not say where they are.
// Anybody who may create volumes may write any path into them.
func (d directories) check(volume *corev1.PersistentVolume) error {
	name := volume.Name
	if !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
		return refuse("%q is no name for a directory", name)
	}
	switch source := reclaim.SourceName(volume); {
	case source == "" || source == "hostPath" && volume.Spec.HostPath.Path == d.path(name):
		return nil
	case source == "hostPath":
		return refuse("spec.hostPath.path is %q, and not the volume's own directory %q", volume.Spec.HostPath.Path, d.path(name))
	default:
		return refuse("spec.%s is no directory", source)
	}
}

func (d directories) path(name string) string { return filepath.Join(d.root, name) }

// refuse is an error that only a change of the object mends.
func refuse(format string, args ...any) error {
	return &binding.HookError{Meaning: binding.HookRefused, Err: fmt.Errorf(format, args...)}
}
