package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

const (
	outsideProvisioner = "example.com/outside"
	outsideFinalizer   = "external-provisioner.volume.kubernetes.io/finalizer"
)

// others are those who work on a cluster beside a binder: an external provisioner, which makes directories and deletes them, and
// a person, who makes Released volumes with policy Retain Available again.
type others struct {
	api  api
	view *view
	root string
	done atomic.Int64 // what they did
}

// live goes on until the context ends.
func (o *others) live(ctx context.Context) error {
	for {
		changed := o.view.next()
		if err := o.once(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("the others: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (o *others) once(ctx context.Context) error {
	for _, found := range o.view.claims.List() {
		if claim := found.(*corev1.PersistentVolumeClaim); o.isAsked(claim) {
			if err := o.provision(ctx, claim); err != nil {
				return err
			}
		}
	}
	for _, found := range o.view.volumes.List() {
		volume := found.(*corev1.PersistentVolume)
		if volume.Status.Phase != corev1.VolumeReleased {
			continue
		}
		var err error
		switch {
		case volume.Annotations[provisionedBy] == outsideProvisioner:
			err = o.remove(ctx, volume)
		case volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
			err = o.open(ctx, volume)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *others) isAsked(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations["volume.kubernetes.io/storage-provisioner"] == outsideProvisioner &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && o.view.volume("pvc-"+string(claim.UID)) == nil
}

func (o *others) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	made := hostVolume(o.root, "pvc-"+string(claim.UID), heldBy(claim), ofClass(*claim.Spec.StorageClassName), policy(corev1.PersistentVolumeReclaimDelete))
	made.Annotations = map[string]string{provisionedBy: outsideProvisioner}
	made.Finalizers = []string{outsideFinalizer}
	if err := os.MkdirAll(made.Spec.HostPath.Path, 0o750); err != nil {
		return err
	}
	_, err := o.api.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	o.done.Add(1)
	return err
}

// remove deletes first the directory, then the volume, and last its own finalizer.
func (o *others) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return err
	}
	if volume.DeletionTimestamp == nil {
		err := o.api.Delete(ctx, obj.VolumeKey(volume.Name), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
		return ignoreNotFound(err)
	}
	volume = volume.DeepCopy()
	volume.Finalizers = slices.DeleteFunc(volume.Finalizers, func(finalizer string) bool { return finalizer == outsideFinalizer })
	return ignoreConflict(o.api.Update(ctx, volume))
}

// open wipes a volume that is Released by what the server says, and takes the claimRef off it.
func (o *others) open(ctx context.Context, seen *corev1.PersistentVolume) error {
	volume, err := o.api.CoreV1().PersistentVolumes().Get(ctx, seen.Name, metav1.GetOptions{})
	if err != nil || volume.Status.Phase != corev1.VolumeReleased || volume.Spec.ClaimRef == nil {
		return ignoreNotFound(err)
	}
	_ = os.Remove(dataOf(volume))
	volume.Spec.ClaimRef = nil
	o.done.Add(1)
	return ignoreConflict(o.api.Update(ctx, volume))
}

// ignoreConflict leaves it to the next time, when the newer version is seen.
func ignoreConflict(_ obj.Object, err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return ignoreNotFound(err)
}

// hostVolume is a volume with a directory of its own below the root.
func hostVolume(root, name string, changes ...func(pv)) pv {
	made := volume(name, "1Gi", changes...)
	made.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: root + "/" + name}}
	return made
}

// dataOf is the file that pods write to.
func dataOf(volume *corev1.PersistentVolume) string { return volume.Spec.HostPath.Path + "/data" }

// directories are storage as pods see it.
type directories struct {
	used atomic.Int64 // how many claims have used some

	mu     sync.Mutex
	crimes []string
}

func (d *directories) add(volume *corev1.PersistentVolume) {
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o750); err != nil {
		d.accuse("directory of %s: %v", volume.Name, err)
	}
}

func (d *directories) open(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if text, err := os.ReadFile(dataOf(volume)); err == nil {
		d.accuse("claim %s (%s) has volume %s with the data of claim %s", claim.Name, claim.UID, volume.Name, text)
	}
	if err := os.WriteFile(dataOf(volume), []byte(claim.UID), 0o600); err != nil {
		d.accuse("claim %s (%s) has volume %s, whose directory is gone: %v", claim.Name, claim.UID, volume.Name, err)
	}
}

func (d *directories) close(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if text, err := os.ReadFile(dataOf(volume)); string(text) != string(claim.UID) {
		d.accuse("claim %s (%s) has lost its data on volume %s: %q, %v", claim.Name, claim.UID, volume.Name, text, err)
	}
	d.used.Add(1)
}

func (d *directories) accuse(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crimes = append(d.crimes, fmt.Sprintf(format, args...))
}
