package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// callsWith is a deleter or recycler that is told what to answer to its n-th call, and a provisioner.
type callsWith struct {
	calls  int
	answer func(call int) error
}

func (h *callsWith) Delete(context.Context, hooks.ReclaimRequest) error {
	h.calls++
	return h.answer(h.calls)
}

func (h *callsWith) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	return h.Delete(ctx, request)
}

// onHostPath returns the hooks by which it deletes and recycles what is on a host's path.
func (h *callsWith) onHostPath() hooks.Set {
	return hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": h}, Recyclers: map[string]hooks.Recycler{"hostPath": h}}
}

func (h *callsWith) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	volume := request.Volume.DeepCopy()
	OnHostPath(volume)
	return volume, nil
}

// nobodyGets fails the test if volume a is not announced, or another tenant's claim gets it.
func nobodyGets(t *testing.T, cluster *Driven) {
	t.Helper()
	_, err := cluster.Create(t.Context(), bindingtest.Claim("shop", "cart", "1Gi"))
	require.NoError(t, err)
	_ = cluster.Settle(t.Context())
	_, announced := reclaim.AnnouncementOf(cluster.Volume("a"))
	assert.True(t, announced)
	assert.Equal(t, corev1.ClaimPending, cluster.Claim("shop", "cart").Status.Phase)
}

// R8, X2: a volume is taken away by force while its deleter or recycler is called, and made again under its name. The call goes on, as its answer says after that; a later one, for what was
// made again, fails. Whoever replaces that by a manifest of before knows nothing of the call that goes on: it is announced again.
func TestR8ACallOutlivesItsVolume(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		for name, within := range map[string]func(*testing.T, *Driven, func()){
			"made again within the call": func(t *testing.T, cluster *Driven, makeAgain func()) {
				vanish(t, cluster, obj.VolumeKey("a"))
				makeAgain()
				cluster.Deliver(obj.KindVolume, 100)
			},
			"made again after the call": func(t *testing.T, cluster *Driven, _ func()) {
				vanish(t, cluster, obj.VolumeKey("a"))
				cluster.Deliver(obj.KindVolume, 100)
			},
		} {
			t.Run(string(policy)+" "+name, func(t *testing.T) {
				var cluster *Driven
				var manifest *corev1.PersistentVolume
				makeAgain := func() {
					again := manifest.DeepCopy()
					again.ObjectMeta = metav1.ObjectMeta{Name: "a", Annotations: again.Annotations}
					again.Status = corev1.PersistentVolumeStatus{}
					_, err := cluster.Create(t.Context(), again)
					require.NoError(t, err)
				}
				hook := &callsWith{answer: func(call int) error {
					if call == 1 {
						within(t, cluster, makeAgain)
						return InProgress(time.Minute)
					}
					return errors.New("the storage is busy")
				}}
				set := hook.onHostPath()
				cluster = NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, bindingtest.Volume("a", "1Gi", WithPolicy(policy)), bindingtest.Claim("default", "data", "1Gi"))
				require.NoError(t, cluster.Settle(t.Context()))
				manifest = cluster.Volume("a")
				require.Equal(t, corev1.VolumeBound, manifest.Status.Phase)
				require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
				_ = cluster.Settle(t.Context()) // the hook is in progress
				if cluster.Volume("a") == nil {
					makeAgain()
				}
				for range 4 {
					_ = cluster.Settle(t.Context())
					if hook.calls < 2 {
						cluster.AdvanceClock(t.Context())
					}
				}
				require.GreaterOrEqual(t, hook.calls, 2)

				volume := cluster.Volume("a")
				volume.Annotations, volume.Finalizers, volume.Spec.ClaimRef = nil, nil, nil
				_, err := cluster.Update(t.Context(), volume)
				require.NoError(t, err)
				nobodyGets(t, cluster)
			})
		}
	}
}

// R8, W8, X2: the deleter of what was provisioned for a claim goes on; etcd is restored to before that was provisioned, and it is provisioned anew, under its name. Whoever replaces it by a
// manifest of before, once it is announced again, knows nothing of that call.
func TestR8ACallOutlivesARestore(t *testing.T) {
	for _, resync := range []string{"", "after a resync"} {
		t.Run(resync, func(t *testing.T) {
			hook := &callsWith{answer: func(int) error { return InProgress(3 * time.Hour) }}
			set := hooks.Set{Provisioners: map[string]hooks.Provisioner{Own: hook}, Deleters: map[string]hooks.Deleter{Own: hook}}
			class := bindingtest.Class("own", func(c *storagev1.StorageClass) { c.Provisioner = Own })
			cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, class, bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("own"))))
			backup := cluster.Snapshot()
			require.NoError(t, cluster.Settle(t.Context()))
			name := cluster.Claim("default", "data").Spec.VolumeName
			require.NotEmpty(t, name)
			manifest := cluster.Volume(name)
			require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
			_ = cluster.Settle(t.Context())
			require.Equal(t, 1, hook.calls)

			cluster.Restore(backup)
			cluster.ObserveRestore()
			for range 6 {
				if _ = cluster.Settle(t.Context()); cluster.Volume(name) == nil {
					cluster.AdvanceClock(t.Context())
					cluster.Resync()
				}
			}
			again := cluster.Volume(name)
			require.NotNil(t, again)
			if resync != "" {
				cluster.Resync()
				_ = cluster.Settle(t.Context())
			}
			manifest.UID, manifest.ResourceVersion = again.UID, again.ResourceVersion
			_, err := cluster.Update(t.Context(), manifest)
			require.NoError(t, err)
			_ = cluster.Settle(t.Context())
			_, announced := reclaim.AnnouncementOf(cluster.Volume(name))
			assert.True(t, announced)
			assert.NotEqual(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
		})
	}
}

// R8, W8, X2: a call goes on, its volume is replaced by a manifest of before, and etcd is restored to before the call, all before the volume's next sync. The call is announced again before any claim is
// bound to the volume: the one that had it, which is back, or another one. Each list tells of the restore, between the writes of the binding.
func TestR8ACallOutlivesAManifestAndARestore(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		for backed, comes := range map[string]obj.Key{"as it was being bound": DataKey, "as it was free": obj.ClaimKey("shop", "cart")} {
			t.Run(string(policy)+" "+backed, func(t *testing.T) {
				hook := &callsWith{answer: func(int) error { return InProgress(3 * time.Hour) }}
				set := hook.onHostPath()
				cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, bindingtest.Volume("a", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain)))
				require.NoError(t, cluster.Settle(t.Context()))
				manifest, backup := cluster.Volume("a"), cluster.Snapshot()
				_, err := cluster.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi"))
				require.NoError(t, err)
				if comes == DataKey {
					cluster.Client.Use(bindingtest.Before(1, bindingtest.OnStatus(obj.KindClaim), func() { manifest, backup = cluster.Volume("a"), cluster.Snapshot() }))
				}
				require.NoError(t, cluster.Settle(t.Context()))
				volume := cluster.Volume("a")
				volume.Spec.PersistentVolumeReclaimPolicy = policy
				_, err = cluster.Update(t.Context(), volume)
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
				require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
				_ = cluster.Settle(t.Context())
				require.Equal(t, 1, hook.calls)

				manifest.ResourceVersion = cluster.Volume("a").ResourceVersion
				_, err = cluster.Update(t.Context(), manifest)
				require.NoError(t, err)
				cluster.Deliver(obj.KindVolume, 100)
				cluster.Restore(backup)
				cluster.ObserveRestore()
				if comes != DataKey {
					_, err = cluster.Create(t.Context(), bindingtest.Claim(comes.Namespace, comes.Name, "1Gi", Naming("a")))
					require.NoError(t, err)
				}
				cluster.Deliver(obj.KindClaim, 100)
				lists := 1
				cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
					err := do()
					if lists < 5 && call.Writes() && call.Key.Kind != "" {
						lists++
						cluster.Controller.ObserveRestoreAgain()
					}
					return err
				})
				_, _ = cluster.Controller.Sync(t.Context(), comes)
				_ = cluster.Settle(t.Context())
				_, announced := reclaim.AnnouncementOf(cluster.Volume("a"))
				assert.True(t, announced)
				assert.Equal(t, corev1.ClaimPending, cluster.Claim(comes.Namespace, comes.Name).Status.Phase)
			})
		}
	}
}

// R8, X2: a volume is replaced by a manifest of before, or taken away by force and made again, while its hook is called, for the first or second time, and the watch shows that after the hook has failed:
// the first step of it before the next write, or nothing. What the hook began may have an effect yet: it is announced again, and nobody gets the volume.
func TestR8AVolumeIsReplacedBeforeItsHookFailsAndSeenAfter(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		for _, forced := range []string{"", " by force"} {
			for replacedIn := 1; replacedIn <= 2; replacedIn++ {
				for shown := range 2 {
					t.Run(fmt.Sprintf("%s%s, in call %d, %d shown", policy, forced, replacedIn, shown), func(t *testing.T) {
						var cluster *Driven
						hook := &callsWith{answer: func(call int) error {
							if call != replacedIn {
								return errors.New("the storage is busy")
							}
							cluster.Deliver(obj.KindVolume, 100)
							manifest, now := bindingtest.Volume("a", "1Gi", WithPolicy(policy)), cluster.Volume("a")
							if forced != "" {
								vanish(t, cluster, AKey)
								_, err := cluster.Create(t.Context(), manifest)
								require.NoError(t, err)
							} else {
								manifest.UID, manifest.ResourceVersion = now.UID, now.ResourceVersion
								_, err := cluster.Update(t.Context(), manifest)
								require.NoError(t, err)
							}
							cluster.Client.Use(bindingtest.Before(1, bindingtest.AnyWrite, func() { cluster.Deliver(obj.KindVolume, shown) }))
							return errors.New("the storage is busy")
						}}
						set := hook.onHostPath()
						cluster = NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, bindingtest.Volume("a", "1Gi", WithPolicy(policy)), bindingtest.Claim("default", "data", "1Gi"))
						require.NoError(t, cluster.Settle(t.Context()))
						require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
						for _ = cluster.Settle(t.Context()); hook.calls < replacedIn; _ = cluster.Settle(t.Context()) {
							cluster.AdvanceClock(t.Context())
						}
						require.Equal(t, replacedIn, hook.calls)

						nobodyGets(t, cluster)
					})
				}
			}
		}
	}
}

// R8, W5: a recycler fails, and that of another controller succeeds. What that frees is free for the first one, too.
func TestR8AnotherControllerRecyclesAfterAFailure(t *testing.T) {
	hook := &callsWith{answer: func(call int) error {
		if call == 1 {
			return errors.New("the storage is busy")
		}
		return nil
	}}
	set := hooks.Set{Recyclers: map[string]hooks.Recycler{"hostPath": hook}}
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, bindingtest.Volume("a", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRecycle)), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	other := bindingtest.NewDriver(cluster.Server, bindingtest.DriverOptions{Name: "other", Hooks: set})
	require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
	_ = cluster.Settle(t.Context())
	require.Equal(t, 1, hook.calls)
	for range 5 {
		_ = other.Settle(t.Context())
		if hook.calls < 2 {
			_ = other.AdvanceClock(t.Context())
		}
	}
	require.Equal(t, 2, hook.calls)
	require.Equal(t, corev1.VolumeAvailable, cluster.Volume("a").Status.Phase)
	_ = cluster.Settle(t.Context())
	_, announced := reclaim.AnnouncementOf(cluster.Volume("a"))
	assert.False(t, announced)
}

// W8, P3: after a restore the storage of a claim is found again, and retained, as it was. A person deletes that volume before the claim is bound to it, which keeps the data: what is found once more is
// retained, too.
func TestW8WhatIsFoundAgainIsRetained(t *testing.T) {
	hook := &callsWith{answer: func(int) error { return nil }}
	set := hooks.Set{Provisioners: map[string]hooks.Provisioner{Own: hook}, Deleters: map[string]hooks.Deleter{Own: hook}}
	class := bindingtest.Class("own", func(c *storagev1.StorageClass) { c.Provisioner = Own })
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: set}, class, bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("own"))))
	backup := cluster.Snapshot()
	require.NoError(t, cluster.Settle(t.Context()))
	name := cluster.Claim("default", "data").Spec.VolumeName
	volume := cluster.Volume(name)
	require.NotNil(t, volume)
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	_, err := cluster.Update(t.Context(), volume)
	require.NoError(t, err)
	require.NoError(t, cluster.Settle(t.Context()))

	cluster.Restore(backup)
	cluster.ObserveRestore()
	deleted := false
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if volume := cluster.Volume(name); !deleted && volume != nil && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			deleted = true
			vanish(t, cluster, obj.VolumeKey(name))
		}
		return do()
	})
	for range 6 {
		_ = cluster.Settle(t.Context())
		cluster.AdvanceClock(t.Context())
		cluster.Resync()
	}
	require.True(t, deleted)
	require.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, cluster.Volume(name).Spec.PersistentVolumeReclaimPolicy)
}
