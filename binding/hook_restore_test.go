package binding_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// claimless is a volume whose claim is gone.
func claimless(policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	return bindingtest.Volume("a", "1Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = policy
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "gone"}
	})
}

func TestW8ARestoreEndsTheHooksThatRun(t *testing.T) {
	notice := map[string]func(*testing.T, *bindingtest.Server, *binding.Controller){
		"it is told": func(_ *testing.T, _ *bindingtest.Server, controller *binding.Controller) { controller.ObserveRestore() },
		"it is told, and was before": func(_ *testing.T, _ *bindingtest.Server, controller *binding.Controller) {
			controller.ObserveRestoreAgain()
		},
		"another sync notices by its reads": func(t *testing.T, server *bindingtest.Server, controller *binding.Controller) {
			later := server.Volume("other")
			later.ResourceVersion = "999"
			controller.Observe(later)
			controller.Recheck(server.Volume("other"))
			_, err := controller.Sync(t.Context(), obj.VolumeKey("other"))
			require.ErrorIs(t, err, binding.ErrServerWentBack)
		},
	}
	for name, notice := range notice {
		for answer, minds := range map[string]bool{"it minds its context": true, "it goes on": false} {
			t.Run(name+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					begun, ended := make(chan struct{}), make(chan error, 1)
					recycler := Recycles(func(ctx context.Context, _ hooks.ReclaimRequest) error {
						close(begun)
						if minds {
							<-ctx.Done()
						} else {
							time.Sleep(time.Minute)
						}
						ended <- context.Cause(ctx)
						return nil // as if it had done its work
					})
					server, controller := hookedController(t, hooks.Set{Recyclers: map[string]hooks.Recycler{"hostPath": recycler}},
						claimless(corev1.PersistentVolumeReclaimRecycle), bindingtest.Volume("other", "1Gi"))
					go func() { _, _ = controller.Sync(t.Context(), AKey) }()
					<-begun
					notice(t, server, controller)
					require.ErrorIs(t, <-ended, binding.ErrServerWentBack)
					synctest.Wait()
					volume := server.Volume("a")
					require.NotNil(t, volume.Spec.ClaimRef, "its answer is no success")
					assert.Equal(t, corev1.VolumeReleased, volume.Status.Phase, "nor does it say that the storage cannot be reclaimed")
				})
			})
		}
	}
}

// Rh, W8, X8: a deleter or recycler neither returns nor heeds its context, which ends by a restore. Its volume waits for it, and that is told.
func TestRhAHookNeverReturnsAfterARestore(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, goOn := make(chan struct{}), make(chan struct{})
				hangs := func(context.Context, hooks.ReclaimRequest) error {
					close(begun)
					<-goOn
					return nil
				}
				server, controller := hookedController(t, hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(hangs)}, Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(hangs)}}, claimless(policy))
				go func() { _, _ = controller.Sync(t.Context(), AKey) }()
				<-begun
				controller.ObserveRestore()
				synctest.Wait()
				for range 3 { // the calls of others are waited for
					_, err := controller.Sync(t.Context(), AKey)
					require.NoError(t, err)
					time.Sleep(2 * reclaim.LongestCall)
				}
				require.NotEmpty(t, warnings(server))
				assert.Contains(t, warnings(server)[len(warnings(server))-1], "an earlier call for pv/a has not returned")
				close(goOn)
			})
		})
	}
}

// limitedClient is a client whose writes wait for the rate limit: until goOn is closed, or their context ends.
type limitedClient struct {
	binding.Client
	waits, goOn chan struct{}
}

func (c limitedClient) wait(ctx context.Context) error {
	close(c.waits)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.goOn:
		return nil
	}
}

func (c limitedClient) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.Client.UpdateVolume(ctx, volume)
}

// A write that was decided on before a restore waits in its client when that is noticed. It is not sent, though the volume may have come to the same
// version again, and its sync goes on by what is there now. The next write is sent.
func TestW8AWriteOfBeforeARestoreIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volume := bindingtest.Volume("a", "1Gi")
		server, controller := hookedController(t, hooks.Set{}, volume, bindingtest.Claim("default", "data", "1Gi"))
		client := limitedClient{controller.Client, make(chan struct{}), make(chan struct{})}
		controller.Client = client
		ended := make(chan error, 1)
		go func() {
			_, err := controller.Sync(t.Context(), DataKey)
			ended <- err
		}()
		<-client.waits
		again := controller.ObserveRestore()
		synctest.Wait()
		close(client.goOn)
		err := <-ended
		require.Error(t, err)
		require.NotErrorIs(t, err, binding.ErrServerWentBack, "it has noticed nothing")
		assert.Nil(t, server.Volume("a").Spec.ClaimRef)
		controller.Client = client.Client
		for _, key := range again {
			_, err := controller.Sync(t.Context(), key)
			require.NoError(t, err)
		}
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
	})
}

// limitedClaims is a client whose writes of one claim wait so.
type limitedClaims struct{ limitedClient }

func (c limitedClaims) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if claim.Name == DataKey.Name {
		if err := c.wait(ctx); err != nil {
			return nil, err
		}
	}
	return c.Client.UpdateClaim(ctx, claim)
}

// F2, C11, X3: the write that lets a claim go waits in its client, and the claimRef of its volume is removed meanwhile. It is not sent, and the claim's last act is to have that
// written again.
func TestF2AClaimIsNotLetGoOnceItsVolumeHasChanged(t *testing.T) {
	for name, gone := range map[string]bool{"its claimRef is removed": false, "it is made again without, and its end is seen": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testChangedBeforeClaimIsLetGo(t, gone) }) })
	}
}

// waitsToLetGo has the sync of the claim wait in its client with the write that lets it go, and returns how that ends.
func waitsToLetGo(t *testing.T, controller *binding.Controller) (client limitedClaims, ended <-chan error) {
	client = limitedClaims{limitedClient{controller.Client, make(chan struct{}), make(chan struct{})}}
	controller.Client = client
	result := make(chan error, 1)
	go func() {
		_, err := controller.Sync(t.Context(), DataKey)
		result <- err
	}()
	<-client.waits
	return client, result
}

func testChangedBeforeClaimIsLetGo(t *testing.T, gone bool) {
	server, controller := hookedController(t, hooks.Set{}, bindingtest.Volume("a", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	syncs := func() {
		for _, key := range append(controller.Observe(server.Volume("a")), DataKey, AKey) {
			_, err := controller.Sync(t.Context(), key)
			require.NoError(t, err)
		}
	}
	syncs()
	require.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
	require.NoError(t, server.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
	controller.Observe(server.Claim("default", "data"))
	client, ended := waitsToLetGo(t, controller)
	volume := server.Volume("a")
	volume.Spec.ClaimRef, volume.Finalizers = nil, nil
	_, err := server.UpdateVolume(t.Context(), volume)
	require.NoError(t, err)
	if gone {
		require.NoError(t, server.Delete(t.Context(), AKey, metav1.DeleteOptions{}))
		controller.ObserveDeleted(volume)
		_, err := server.Create(t.Context(), bindingtest.Volume("a", "1Gi"))
		require.NoError(t, err)
	} else {
		controller.Observe(server.Volume("a"))
	}
	synctest.Wait()
	close(client.goOn)
	require.ErrorContains(t, <-ended, "was changed before the server has answered")
	require.NotNil(t, server.Claim("default", "data"))
	controller.Client = client.Client
	syncs()
	assert.Nil(t, server.Claim("default", "data"))
	assert.NotNil(t, server.Volume("a").Spec.ClaimRef)
}

// The same where the claim is Lost by a slip in the UID, and the sync of another claim reads the volume, from which the claimRef was removed.
func TestF2AClaimIsNotLetGoOnceAReplyShowsItsVolumeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, controller := hookedController(t, hooks.Set{}, bindingtest.Volume("a", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
		other := obj.ClaimKey("shop", "names")
		edit := func(edit VolumeEdit) {
			volume := server.Volume("a")
			edit(volume)
			_, err := server.UpdateVolume(t.Context(), volume)
			require.NoError(t, err)
		}
		syncs := func(keys ...obj.Key) {
			for _, key := range keys {
				_, err := controller.Sync(t.Context(), key)
				require.NoError(t, err)
			}
		}
		syncs(DataKey)
		_, err := server.Create(t.Context(), bindingtest.Claim("shop", "names", "1Gi", Naming("a")))
		require.NoError(t, err)
		controller.Observe(server.Claim("shop", "names"))
		syncs(other)
		edit(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID += "x" })
		syncs(append(controller.Observe(server.Volume("a")), DataKey)...)
		require.Equal(t, corev1.ClaimLost, server.Claim("default", "data").Status.Phase)
		for _, key := range []obj.Key{DataKey, other} {
			require.NoError(t, server.Delete(t.Context(), key, metav1.DeleteOptions{}))
			controller.Observe(server.Claim(key.Namespace, key.Name))
		}
		client, ended := waitsToLetGo(t, controller)
		edit(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
		syncs(other) // which ends with a read of the volume
		synctest.Wait()
		close(client.goOn)
		require.ErrorContains(t, <-ended, "was changed before the server has answered")
		require.NotNil(t, server.Claim("default", "data"))
	})
}

// The same where the removal is seen between the decision and its write, when the time is noted at which that is sent; and where P2's finalizer is the last one.
func TestF2AClaimIsNotLetGoOnceItsVolumeIsSeenToHaveChanged(t *testing.T) {
	for name, finalizer := range map[string]string{"F2": reclaim.ClaimProtection, "P2": decision.ProvisioningFinalizer} {
		t.Run(name, func(t *testing.T) {
			server, controller := hookedController(t, hooks.Set{}, bindingtest.Volume("a", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
			_, err := controller.Sync(t.Context(), DataKey)
			require.NoError(t, err)
			claim := server.Claim("default", "data")
			require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
			_, err = server.Create(t.Context(), bindingtest.Volume(decision.ProvisionedName(claim.UID), "1Gi")) // which stands for what was made for it
			require.NoError(t, err)
			claim.Finalizers = []string{finalizer}
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storageclass.ProvisionerAnnotation, Own)
			_, err = server.UpdateClaim(t.Context(), claim)
			require.NoError(t, err)
			require.NoError(t, server.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
			controller.Observe(server.Claim("default", "data"))
			client := &readingClient{Client: controller.Client, protected: finalizer == reclaim.ClaimProtection}
			controller.Client = client
			looks := 0
			controller.Now = func() time.Time {
				if !client.read {
					return server.Now()
				}
				if looks++; looks == 2 { // after that of the decision
					volume := server.Volume("a")
					volume.Spec.ClaimRef = nil
					_, err := server.UpdateVolume(t.Context(), volume)
					require.NoError(t, err)
					controller.Observe(server.Volume("a"))
				}
				return server.Now()
			}
			_, err = controller.Sync(t.Context(), DataKey)
			require.ErrorContains(t, err, "was changed before the server has answered")
			require.GreaterOrEqual(t, looks, 2)
			require.NotNil(t, server.Claim("default", "data"))
			_, err = controller.Sync(t.Context(), DataKey)
			require.NoError(t, err)
			assert.Nil(t, server.Claim("default", "data"))
			assert.NotNil(t, server.Volume("a").Spec.ClaimRef)
		})
	}
}

// readingClient notes the last read before a claim is let go, and writes no claim once its context has ended.
type readingClient struct {
	binding.Client
	protected, read bool
}

func (c *readingClient) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	pods, err := c.Client.ListPods(ctx, namespace)
	c.read = c.protected
	return pods, err
}

func (c *readingClient) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	volume, err := c.Client.GetVolume(ctx, name)
	c.read = c.read || name == "a" && !c.protected
	return volume, err
}

func (c *readingClient) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.Client.UpdateClaim(ctx, claim)
}

func TestR8NoCallTakesLongerThanAnHour(t *testing.T) {
	limits := map[string]time.Duration{}
	limit := func(ctx context.Context, name string) {
		end, _ := ctx.Deadline()
		limits[name] = time.Until(end)
	}
	play := func(t *testing.T) {
		set := hooks.Set{Timeout: 3 * time.Hour, SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(func(ctx context.Context, _ hooks.ReclaimRequest) error {
			limit(ctx, "deleter")
			return ErrBroken
		})}}
		_, controller := hookedController(t, set, claimless(corev1.PersistentVolumeReclaimDelete))
		_, err := controller.Sync(t.Context(), AKey)
		require.NoError(t, err)
		set = provisionedBy1(func(ctx context.Context, _ hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			limit(ctx, "provisioner")
			return nil, ErrBroken
		})
		set.Timeout = 3 * time.Hour
		_, controller = hookedController(t, set, provisionable()...)
		_, err = controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
	}
	t.Run("of a deleter; of a provisioner it may", func(t *testing.T) {
		synctest.Test(t, play)
		assert.Equal(t, map[string]time.Duration{"deleter": time.Hour, "provisioner": 3 * time.Hour}, limits)
	})
}
