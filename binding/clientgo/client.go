package clientgo

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	_ binding.Client           = (*Client)(nil)
	_ binding.AttachmentLister = (*Client)(nil)
	_ binding.Follower         = (*Client)(nil)
)

// Client is a binding.Client on a clientset. It reads from the server itself: a clientset has no cache.
//
// A list that is older than another of its kind that it has read, or than a claim or a volume that it was told of, is an error, once:
// see Lists.
//
// What it returns has no managedFields, which no decision needs and which are often half of an object. The server
// keeps its own where an update brings none.
type Client struct {
	Clientset kubernetes.Interface
	// Timeout bounds each call; 30 s if zero. The outcome of a write that takes longer is found by a read (B6).
	Timeout time.Duration

	called func(verb, resource string, err error) // called after each request; may be nil
	lists  Lists
}

const defaultTimeout = 30 * time.Second

const (
	volumes     = "persistentvolumes"
	claims      = "persistentvolumeclaims"
	pods        = "pods"
	attachments = "volumeattachments"
)

// call makes one request within the timeout.
func (c *Client) call(ctx context.Context, verb, resource string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, defaultTimeout))
	defer cancel()
	err := do(ctx)
	if c.called != nil {
		c.called(verb, resource, err)
	}
	return err
}

// volume makes a request whose reply is the volume of that name.
func (c *Client) volume(ctx context.Context, verb, name string, do func(context.Context) (*corev1.PersistentVolume, error)) (volume *corev1.PersistentVolume, err error) {
	err = c.call(ctx, verb, volumes, func(ctx context.Context) (err error) {
		volume, err = do(ctx)
		return err
	})
	return answered(obj.VolumeKey(name), volume, err)
}

// claim makes a request whose reply is the claim of that key.
func (c *Client) claim(ctx context.Context, verb string, key obj.Key, do func(context.Context) (*corev1.PersistentVolumeClaim, error)) (claim *corev1.PersistentVolumeClaim, err error) {
	err = c.call(ctx, verb, claims, func(ctx context.Context) (err error) {
		claim, err = do(ctx)
		return err
	})
	return answered(key, claim, err)
}

// answered returns the object of a reply, or its error. A reply that is not the object is one.
func answered[T obj.Object](key obj.Key, object T, err error) (T, error) {
	if err == nil {
		err = obj.CheckReply(key, object)
	}
	if err != nil {
		var none T
		return none, err
	}
	object.SetManagedFields(nil)
	return object, nil
}

// Reached notes how far the server was, by the resourceVersion of a claim or a volume, for the lists that are requested after that.
func (c *Client) Reached(version string) { c.lists.Reached(version) }

// GetVolume reads a volume. One that is not found is listed, to confirm that: see obj.Confirm.
func (c *Client) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	key, volumes := obj.VolumeKey(name), c.Clientset.CoreV1().PersistentVolumes()
	volume, err := c.volume(ctx, "get", name, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return volumes.Get(ctx, name, metav1.GetOptions{})
	})
	if !obj.IsAbsent(err, key) {
		return volume, err
	}
	return c.volume(ctx, "list", name, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		list, failed := volumes.List(ctx, named(name))
		return obj.Confirm(key, err, list, pointers(list.Items), failed)
	})
}

// GetClaim reads a claim. One that is not found is listed, to confirm that: see obj.Confirm.
func (c *Client) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	key, claims := obj.ClaimKey(namespace, name), c.Clientset.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := c.claim(ctx, "get", key, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return claims.Get(ctx, name, metav1.GetOptions{})
	})
	if !obj.IsAbsent(err, key) {
		return claim, err
	}
	return c.claim(ctx, "list", key, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		list, failed := claims.List(ctx, named(name))
		return obj.Confirm(key, err, list, pointers(list.Items), failed)
	})
}

// named returns the options to list the object of a name alone.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// ListClaims lists the claims of all namespaces.
func (c *Client) ListClaims(ctx context.Context) ([]*corev1.PersistentVolumeClaim, error) {
	found, err := list(ctx, c, obj.ClaimsKey(), claims, c.Clientset.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List)
	if err != nil {
		return nil, err
	}
	return pointers(found.Items), nil
}

// ListPods lists the pods of a namespace.
func (c *Client) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	found, err := list(ctx, c, obj.PodsKey(namespace), pods, c.Clientset.CoreV1().Pods(namespace).List)
	if err != nil {
		return nil, err
	}
	return pointers(found.Items), nil
}

// ListAttachments lists all VolumeAttachments.
func (c *Client) ListAttachments(ctx context.Context) ([]*storagev1.VolumeAttachment, error) {
	found, err := list(ctx, c, obj.AttachmentsKey(), attachments, c.Clientset.StorageV1().VolumeAttachments().List)
	if err != nil {
		return nil, err
	}
	return pointers(found.Items), nil
}

// list makes a request for the list of a key.
func list[List metav1.ListInterface](ctx context.Context, c *Client, key obj.Key, resource string, do func(context.Context, metav1.ListOptions) (List, error)) (found List, err error) {
	err = c.lists.Read(key, func() (metav1.ListInterface, error) {
		err := c.call(ctx, "list", resource, func(ctx context.Context) (err error) {
			found, err = do(ctx, metav1.ListOptions{})
			return err
		})
		return found, err
	})
	return found, err
}

func pointers[T any](items []T) []*T {
	found := make([]*T, len(items))
	for i := range items {
		found[i] = &items[i]
	}
	return found
}

// UpdateVolume writes metadata and spec of a volume.
func (c *Client) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return c.volume(ctx, "update", volume.Name, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return c.Clientset.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
	})
}

// UpdateVolumeStatus writes metadata and status of a volume.
func (c *Client) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return c.volume(ctx, "update_status", volume.Name, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return c.Clientset.CoreV1().PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{})
	})
}

// UpdateClaim writes metadata and spec of a claim.
func (c *Client) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c.claim(ctx, "update", obj.KeyOf(claim), func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return c.Clientset.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	})
}

// UpdateClaimStatus writes metadata and status of a claim.
func (c *Client) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c.claim(ctx, "update_status", obj.KeyOf(claim), func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return c.Clientset.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	})
}

// CreateVolume creates a volume.
func (c *Client) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return c.volume(ctx, "create", volume.Name, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return c.Clientset.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	})
}

// DeleteVolume deletes a volume, if the preconditions allow it.
func (c *Client) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	return c.call(ctx, "delete", volumes, func(ctx context.Context) error {
		return c.Clientset.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &preconditions})
	})
}
