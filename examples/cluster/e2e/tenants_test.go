package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// view is what claims and volumes there are, by a watch, for tenants to wait by.
type view struct {
	volumes, claims cache.Store

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

func viewOf(t testing.TB, a api) *view {
	t.Helper()
	core := a.factory().Core().V1()
	v := &view{changed: make(chan struct{})}
	v.volumes, v.claims = v.follow(t, core.PersistentVolumes().Informer()), v.follow(t, core.PersistentVolumeClaims().Informer())
	return v
}

func (v *view) follow(t testing.TB, informer cache.SharedIndexInformer) cache.Store {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { v.wake() }})
	require.NoError(t, err)
	observe(t, informer, func(metav1.Object) { v.wake() })
	return informer.GetStore()
}

func (v *view) wake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *view) next() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// await waits until something is so, and reports false if the context ends before.
func (v *view) await(ctx context.Context, so func() bool) bool {
	for {
		changed := v.next()
		if so() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (v *view) claim(name string) *corev1.PersistentVolumeClaim {
	found, _, _ := v.claims.GetByKey(ns + "/" + name)
	claim, _ := found.(*corev1.PersistentVolumeClaim)
	return claim
}

func (v *view) volume(name string) *corev1.PersistentVolume {
	found, _, _ := v.volumes.GetByKey(name)
	volume, _ := found.(*corev1.PersistentVolume)
	return volume
}

// tenant has a claim made, uses what it gets, deletes the claim, and begins anew under the same name.
type tenant struct {
	api     api
	view    *view
	storage tenantStorage
	claim   *corev1.PersistentVolumeClaim
	// volume, if any, makes the volume for the n-th claim, as soon as there is none of its name.
	volume func(n int) *corev1.PersistentVolume
}

// tenantStorage is what a pod of a tenant does with a disk.
type tenantStorage interface {
	add(volume *corev1.PersistentVolume)
	open(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim)
	close(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim)
}

// live goes on until the context ends. The claim that it has then, it deletes.
func (t tenant) live(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		if err := t.once(ctx, n); err != nil {
			return fmt.Errorf("the tenant of claim %s: %w", t.claim.Name, err)
		}
	}
	return nil
}

func (t tenant) once(ctx context.Context, n int) error {
	always := context.WithoutCancel(ctx)
	if t.volume != nil {
		volume := t.volume(n)
		if !t.view.await(ctx, func() bool { return t.view.volume(volume.Name) == nil }) {
			return nil
		}
		t.storage.add(volume)
		if err := createPatiently(always, t.api, []obj.Object{volume}); err != nil {
			return err
		}
	}
	if err := createPatiently(always, t.api, []obj.Object{t.claim}); err != nil {
		return err
	}
	if t.view.await(ctx, t.isBound) {
		claim := t.view.claim(t.claim.Name)
		volume := t.view.volume(claim.Spec.VolumeName)
		t.storage.open(volume, claim)
		after(rand.N(20 * time.Millisecond))
		t.storage.close(volume, claim)
	}
	if err := t.api.Delete(always, obj.KeyOf(t.claim), metav1.DeleteOptions{}); err != nil {
		return err
	}
	t.view.await(ctx, func() bool { return t.view.claim(t.claim.Name) == nil })
	return nil
}

func (t tenant) isBound() bool {
	claim := t.view.claim(t.claim.Name)
	return claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound && t.view.volume(claim.Spec.VolumeName) != nil
}
