package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/reclaim"
)

var (
	_ hooks.Provisioner = directories{}
	_ hooks.Deleter     = directories{}
	_ hooks.Recycler    = directories{}
)

// directories keeps each volume in a directory of the volume's name right below a root, on the machine that it
// runs on. Capacity is declared only: nothing keeps a pod from writing more.
//
// A pod may run as any user, so everybody may write to the directories; who gets that far, the mode of the root
// says. Links are never followed; a file system that is mounted below the root counts as part of it.
type directories struct {
	root string // absolute
}

// Provision makes the directory of the claim. Its name has the claim's UID, so a second call finds it there.
func (d directories) Provision(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
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
func (d directories) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	return d.at(ctx, request.Volume, func(root *os.Root, name string) error {
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
func (d directories) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	return d.at(ctx, request.Volume, func(root *os.Root, name string) error { return empty(ctx, root, name) })
}

// at calls do with the root and the name of the volume's directory. The root is opened each time, so that a missing root
// is an error, and does not mean that its directories are gone.
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

// check rejects every volume but those whose path is that of their own directory, or that have no source. Anybody who may
// create volumes may write any path into them.
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

// refuse returns an error after which nothing is tried again until the object changes.
func refuse(format string, args ...any) error {
	return &hooks.Error{Meaning: hooks.Refused, Err: fmt.Errorf(format, args...)}
}
