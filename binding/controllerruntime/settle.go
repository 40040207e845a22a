package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Settle runs a binding.Controller until no sync is left to run, and returns the errors that remain. In a test it does what
// kube-controller-manager would have done by now: it binds claims, releases volumes, and removes the protection finalizers
// from what nobody uses.
//
// It waits for no back-off: a sync that failed is repeated at once, a few times. A claim that waits for a scheduler or for an
// external provisioner stays Pending.
func Settle(ctx context.Context, c client.Client) error {
	reconciler := Reconciler{Client: c, BindingOptions: decision.Options{Protection: decision.ProtectionOn}}
	return reconciler.Settle(ctx)
}

// Settle does what the function Settle does, with the Client, BindingOptions, Hooks and Recorder of a Reconciler that is not set up
// with a manager.
func (r *Reconciler) Settle(ctx context.Context) error {
	if err := r.Pods.Check(r.BindingOptions, r.Hooks); err != nil {
		return fmt.Errorf("controllerruntime.Reconciler: %w", err)
	}
	if r.Client == nil {
		return errors.New("controllerruntime.Reconciler: no Client")
	}
	run := settling{controller: r.newController(Client{Client: r.Client, fake: true}, r.Recorder), failures: map[obj.Key]int{}, errs: map[obj.Key]error{}}
	objects, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if setServerDefaults(object) {
			if err := r.Client.Update(ctx, object); err != nil {
				return err
			}
		}
		run.queue = append(run.queue, run.controller.Observe(object)...)
	}
	return run.run(ctx, syncsPerObject*(1+len(objects)))
}

// list returns everything that decisions depend on, classes first.
func (r *Reconciler) list(ctx context.Context) ([]client.Object, error) {
	lists := []client.ObjectList{&storagev1.StorageClassList{}, &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}}
	if r.Pods == clientgo.PodsWatched {
		lists = append(lists, &corev1.PodList{})
	}
	if r.Hooks.Reclaims() {
		lists = append(lists, &storagev1.VolumeAttachmentList{})
	}
	var objects []client.Object
	for _, list := range lists {
		if err := r.Client.List(ctx, list); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

const (
	retries        = 5
	syncsPerObject = 100 // far more than it takes
)

// settling is one run of Settle.
type settling struct {
	controller *binding.Controller
	queue      []obj.Key
	failures   map[obj.Key]int
	errs       map[obj.Key]error
}

func (s *settling) run(ctx context.Context, limit int) error {
	for syncs := 0; len(s.queue) > 0; syncs++ {
		key := s.queue[0]
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if syncs == limit {
			return fmt.Errorf("controllerruntime.Settle: no end after %d syncs, the last of %s", limit, key)
		}
		s.queue = s.queue[1:]
		result, err := s.controller.Sync(ctx, key)
		s.queue = append(s.queue, result.Next...)
		s.note(key, err)
	}
	errs := slices.SortedFunc(maps.Values(s.errs), func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// note keeps the error of a key until a later sync of it succeeds.
func (s *settling) note(key obj.Key, err error) {
	if err == nil {
		delete(s.errs, key)
		return
	}
	s.errs[key] = describe(key, err)
	if invalid := (*obj.InvalidError)(nil); errors.As(err, &invalid) {
		return
	}
	if s.failures[key]++; s.failures[key] <= retries {
		s.queue = append(s.queue, key)
	}
}

// describe adds the key to an error that does not name it itself.
func describe(key obj.Key, err error) error {
	if invalid := (*obj.InvalidError)(nil); errors.As(err, &invalid) && invalid.Object == key.String() {
		return err
	}
	return fmt.Errorf("%s: %w", key, err)
}

// setServerDefaults sets the UID and the defaults that an API server sets and a fake client does not, as far as decisions
// depend on them (A1, A6). It reports whether it changed the object.
func setServerDefaults(object client.Object) bool {
	changed := false
	if object.GetUID() == "" {
		object.SetUID(uuid.NewUUID())
		changed = true
	}
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if object.Spec.PersistentVolumeReclaimPolicy == "" {
			object.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			changed = true
		}
	case *storagev1.StorageClass:
		changed = setDefault(&object.VolumeBindingMode, storagev1.VolumeBindingImmediate) || changed
		changed = setDefault(&object.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete) || changed
	}
	return changed
}

func setDefault[T any](field **T, value T) bool {
	if *field != nil {
		return false
	}
	*field = &value
	return true
}
