package clientgo

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// unseen are the objects that the crew knows from replies of the server, since the last resync. One that no informer has
// shown by then may be gone: if that was while nothing could be watched, no informer will ever tell of its end.
type unseen struct {
	mu      sync.Mutex
	objects map[obj.Key]obj.Object
}

func (u *unseen) note(object obj.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.objects == nil {
		u.objects = map[obj.Key]obj.Object{}
	}
	u.objects[keyOf(object)] = object
}

// take returns all of them, and forgets them.
func (u *unseen) take() map[obj.Key]obj.Object {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.objects
	u.objects = nil
	return taken
}

// checkUnseen asks the server for what no informer has shown, and tells the controller of what is gone. What still
// exists is asked for again at the next resync, as is what the server gave no answer about.
func (c *crew) checkUnseen(ctx context.Context, shown func(obj.Object) bool) {
	objects := c.unseen.take()
	maps.DeleteFunc(objects, func(_ obj.Key, object obj.Object) bool { return shown(object) })
	for _, object := range objects {
		current, err := c.read(ctx, object)
		switch {
		case binding.IsAbsent(err, keyOf(object)), err == nil && current.GetUID() != object.GetUID():
			c.observeDeleted(object)
		case err != nil:
			c.unseen.note(object)
		}
	}
}

// read reads the object of that name. If it exists it is noted again, as every reply.
func (c *crew) read(ctx context.Context, object obj.Object) (obj.Object, error) {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		return c.controller.Client.GetClaim(ctx, claim.Namespace, claim.Name)
	}
	return c.controller.Client.GetVolume(ctx, object.GetName())
}

func keyOf(object obj.Object) obj.Key {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		return obj.KeyOf(claim)
	}
	return obj.VolumeKey(object.GetName())
}
