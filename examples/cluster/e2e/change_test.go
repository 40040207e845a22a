package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// change is something that a person does to a cluster. Whether there is anything to do depends on what the cluster is
// like by then.
type change interface {
	make(context.Context, api) error
}

// creation creates an object, unless there is one of its name.
type creation struct{ object obj.Object }

func (c creation) make(ctx context.Context, a api) error {
	_, err := a.Create(ctx, c.object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// deletion deletes an object, if there is one.
type deletion struct{ key obj.Key }

func (d deletion) make(ctx context.Context, a api) error {
	return ignoreNotFound(a.Delete(ctx, d.key, metav1.DeleteOptions{}))
}

// destruction deletes an object whatever holds it.
type destruction struct{ key obj.Key }

func (d destruction) make(ctx context.Context, a api) error { return a.destroy(ctx, d.key) }

// opening takes the claimRef from a Released volume.
type opening struct{ name string }

func (o opening) make(ctx context.Context, a api) error {
	for {
		volume, err := a.CoreV1().PersistentVolumes().Get(ctx, o.name, metav1.GetOptions{})
		if err != nil || volume.Status.Phase != corev1.VolumeReleased {
			return ignoreNotFound(err)
		}
		volume.Spec.ClaimRef = nil
		_, err = a.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
