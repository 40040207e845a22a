package binding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// crowd is the workers of a controller, with a queue.
type crowd struct {
	*binding.Controller
	server *bindingtest.Server

	mu    sync.Mutex
	more  sync.Cond
	queue []obj.Key
	ended bool
}

// newCrowd starts the workers. They stop when the test ends.
func newCrowd(t *testing.T, workers int, controller *binding.Controller, server *bindingtest.Server) *crowd {
	c := &crowd{Controller: controller, server: server}
	c.more.L = &c.mu
	c.Workers = workers
	var group sync.WaitGroup
	for range workers + 1 {
		group.Go(func() {
			for key, ok := c.next(); ok; key, ok = c.next() {
				result, _ := c.Sync(t.Context(), key)
				c.add(result.Next...)
				if result.After > 0 {
					time.AfterFunc(result.After, func() { c.add(key) })
				}
			}
		})
	}
	t.Cleanup(func() {
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		c.more.Broadcast()
		group.Wait()
	})
	return c
}

func (c *crowd) next() (key obj.Key, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.ended {
		c.more.Wait()
	}
	if c.ended {
		return obj.Key{}, false
	}
	key, c.queue = c.queue[0], c.queue[1:]
	return key, true
}

func (c *crowd) add(keys ...obj.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, keys...)
	c.more.Broadcast()
}

// create creates an object and has the workers see to it.
func (c *crowd) create(t *testing.T, object obj.Object) {
	created, err := c.server.Create(t.Context(), object)
	require.NoError(t, err)
	c.add(c.Observe(created)...)
}

// bound returns how long it takes until the claim is Bound.
func (c *crowd) bound(claim obj.Key) time.Duration {
	start := time.Now()
	for c.server.Claim(claim.Namespace, claim.Name).Status.Phase != corev1.ClaimBound && time.Since(start) < time.Hour {
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

// A tenant has claims of a class whose provisioner hangs, in so many namespaces. The time in which this plays passes only when
// nothing else is left to happen.
func TestRhATenantsHooksLeaveRoomForOthers(t *testing.T) {
	const timeout, atOnce = 2 * time.Second, time.Millisecond
	for _, test := range []struct {
		maxConcurrent, namespaces int
		longest                   time.Duration
	}{
		{0, 1, atOnce},
		{2, 1, atOnce},
		{1, 1, 2*timeout + atOnce},
		{0, 2, atOnce},
		{0, 4, atOnce},
		{0, 10, 2*timeout + atOnce},
		{0, 30, 2*timeout + atOnce},
		{1, 3, 4*timeout + atOnce},
	} {
		if testing.Short() && rand.IntN(3) > 0 {
			continue // one in three, by lot
		}
		t.Run(fmt.Sprintf("Rh MaxConcurrent %d beside %d namespaces", test.maxConcurrent, test.namespaces), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
					if request.Claim.Namespace != "other" {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return MakesPaths(ctx, request)
				})
				hookSet.Timeout, hookSet.MaxConcurrent = timeout, test.maxConcurrent
				server, controller := hookedController(t, hookSet)
				crowd := newCrowd(t, 64, controller, server)
				crowd.create(t, provisionable()[0])
				for n := range 20 * (test.namespaces + 9) {
					crowd.create(t, bindingtest.Claim(fmt.Sprint("tenant-", n%test.namespaces), fmt.Sprint(n), "1Gi", ofClass("fast")))
				}
				time.Sleep(time.Second)
				for n := range 3 {
					crowd.create(t, bindingtest.Claim("other", fmt.Sprint(n), "1Gi", ofClass("fast")))
					assert.LessOrEqual(t, crowd.bound(obj.ClaimKey("other", fmt.Sprint(n))), test.longest)
				}
			})
		})
	}
}

// A tenant has several namespaces, in each of which very many syncs take a second, as its pods are so large. As long as those are
// fewer than the workers, who comes does not wait. Else they wait for a turn, and not for all that is in the workers' queue.
func TestW9WhoComesDoesNotWaitForAllThatWasThereBefore(t *testing.T) {
	const workers, many = 8, 200
	for namespaces, longest := range map[int]time.Duration{0: time.Millisecond, 2: time.Millisecond, 10: 3 * time.Second} {
		t.Run(fmt.Sprintf("W9 %d namespaces", namespaces), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, controller := hookedController(t, hooks.Set{})
				client := server.NewClient("controller")
				client.Use(func(call *bindingtest.Call, do func() error) error {
					if call.Verb == bindingtest.VerbList && call.Key.Namespace != "other" {
						time.Sleep(time.Second)
					}
					return do()
				})
				controller.Client, controller.Options.Protection = client, decision.ProtectionOn
				crowd := newCrowd(t, workers, controller, server)
				tenants := func(do func(claim obj.Key)) {
					for n := range many {
						for in := range namespaces {
							do(obj.ClaimKey(fmt.Sprint("tenant-", in), fmt.Sprint(n)))
						}
					}
				}
				tenants(func(claim obj.Key) {
					crowd.create(t, bindingtest.Claim(claim.Namespace, claim.Name, "1Gi", ofClass("none")))
				})
				synctest.Wait()
				tenants(func(claim obj.Key) {
					require.NoError(t, server.Delete(t.Context(), claim, metav1.DeleteOptions{}))
					crowd.add(crowd.Observe(server.Claim(claim.Namespace, claim.Name))...)
				})
				for n := range 3 {
					crowd.create(t, bindingtest.Volume(fmt.Sprint("volume-", n), "1Gi"))
					crowd.create(t, bindingtest.Claim("other", fmt.Sprint(n), "1Gi"))
					took := crowd.bound(obj.ClaimKey("other", fmt.Sprint(n)))
					t.Logf("beside %d namespaces: bound after %s", namespaces, took)
					assert.LessOrEqual(t, took, longest)
				}
				time.Sleep(time.Hour)
				tenants(func(claim obj.Key) { assert.Nil(t, server.Claim(claim.Namespace, claim.Name)) })
			})
		})
		if testing.Short() {
			break // any one
		}
	}
}

// A tenant whose syncs are slow has hooks wait too. The slot that is its turn is not kept for a sync that no worker is there for.
func TestRhW9ATenantsSlowSyncsLeaveTheHooksToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = 100 * time.Millisecond
		hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			time.Sleep(call)
			return MakesPaths(ctx, request)
		})
		hookSet.MaxConcurrent = 1
		server, controller := hookedController(t, hookSet)
		client := server.NewClient("controller")
		client.Use(func(call *bindingtest.Call, do func() error) error {
			if call.Verb == bindingtest.VerbList && call.Key.Namespace == "tenant" {
				time.Sleep(time.Minute)
			}
			return do()
		})
		controller.Client, controller.Options.Protection = client, decision.ProtectionOn
		crowd := newCrowd(t, 4, controller, server)
		crowd.create(t, provisionable()[0])
		for n := range 20 {
			crowd.create(t, bindingtest.Claim("tenant", fmt.Sprint("slow-", n), "1Gi", ofClass("none")))
		}
		synctest.Wait()
		for n := range 20 {
			crowd.create(t, bindingtest.Claim("tenant", fmt.Sprint("made-", n), "1Gi", ofClass("fast")))
		}
		synctest.Wait()
		for n := range 20 {
			claim := obj.ClaimKey("tenant", fmt.Sprint("slow-", n))
			require.NoError(t, server.Delete(t.Context(), claim, metav1.DeleteOptions{}))
			crowd.add(crowd.Observe(server.Claim(claim.Namespace, claim.Name))...)
		}
		for n := range 3 {
			crowd.create(t, bindingtest.Claim("other", fmt.Sprint(n), "1Gi", ofClass("fast")))
			assert.LessOrEqual(t, crowd.bound(obj.ClaimKey("other", fmt.Sprint(n))), 4*call)
		}
		time.Sleep(time.Hour)
		for n := range 20 {
			assert.Equal(t, corev1.ClaimBound, server.Claim("tenant", fmt.Sprint("made-", n)).Status.Phase)
		}
	})
}

// A tenant's pods are so large that to list them takes a second, and what needs the list is very many.
func TestW9ATenantsSlowSyncsLeaveWorkersForOthers(t *testing.T) {
	const many = 300
	type world struct {
		begin func(*crowd)
		left  func(*bindingtest.Server) int
	}
	for name, world := range map[string]world{
		"W9 claims that are deleted": {func(c *crowd) {
			for n := range many {
				claim := obj.ClaimKey("tenant", fmt.Sprint(n))
				require.NoError(t, c.server.Delete(t.Context(), claim, metav1.DeleteOptions{}))
				c.add(c.Observe(c.server.Claim(claim.Namespace, claim.Name))...)
			}
		}, func(server *bindingtest.Server) (left int) {
			for n := range many {
				if server.Claim("tenant", fmt.Sprint(n)) != nil {
					left++
				}
			}
			return left
		}},
		"W9 volumes that are recycled": {func(c *crowd) {
			for n := range many {
				c.create(t, bindingtest.Volume(fmt.Sprint("recycled-", n), "1Gi", func(v *corev1.PersistentVolume) {
					v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
					v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: fmt.Sprint("gone-", n), UID: "gone"}
				}))
			}
		}, func(server *bindingtest.Server) (left int) {
			for n := range many {
				if server.Volume(fmt.Sprint("recycled-", n)).Status.Phase != corev1.VolumeAvailable {
					left++
				}
			}
			return left
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recycles := Recycles(func(context.Context, hooks.ReclaimRequest) error { return nil })
				hookSet := hooks.Set{MaxConcurrent: 100, Recyclers: map[string]hooks.Recycler{"hostPath": recycles}}
				server, controller := hookedController(t, hookSet)
				client := server.NewClient("controller")
				client.Use(func(call *bindingtest.Call, do func() error) error {
					err := do()
					if call.Verb == bindingtest.VerbList && call.Key.Namespace == "tenant" {
						time.Sleep(time.Second)
					}
					return err
				})
				controller.Client, controller.Options.Protection = client, decision.ProtectionOn
				crowd := newCrowd(t, 8, controller, server)
				for n := range many {
					crowd.create(t, bindingtest.Claim("tenant", fmt.Sprint(n), "1Gi", ofClass("none")))
				}
				synctest.Wait()
				world.begin(crowd)
				synctest.Wait()

				crowd.create(t, bindingtest.Volume("volume", "1Gi"))
				crowd.create(t, bindingtest.Claim("other", "data", "1Gi"))
				assert.LessOrEqual(t, crowd.bound(obj.ClaimKey("other", "data")), time.Millisecond)
				crowd.create(t, bindingtest.Volume("others", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain), RefersTo("other", "gone", "gone")))
				time.Sleep(time.Millisecond)
				assert.Equal(t, corev1.VolumeReleased, server.Volume("others").Status.Phase, "nor do the volumes of others wait")
				time.Sleep(time.Hour)
				assert.Zero(t, world.left(server), "and what was slow comes to its end all the same")
			})
		})
	}
}

// A tenant's claims are so large that to list all claims takes a second, and somebody makes very many volumes in place of others
// (V1), whose syncs are of no namespace.
func TestW9VolumesWithoutClaimRefLeaveWorkersForOthers(t *testing.T) {
	const many = 80
	t.Run("W9 V1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, controller := hookedController(t, hooks.Set{})
			client := server.NewClient("controller")
			lists := 0
			client.Use(func(call *bindingtest.Call, do func() error) error {
				if call.Verb == bindingtest.VerbList {
					lists++
					time.Sleep(time.Second)
				}
				return do()
			})
			controller.Client = client
			crowd := newCrowd(t, 8, controller, server)
			for n := range many {
				gone := bindingtest.Volume(fmt.Sprint("again-", n), "1Mi", func(v *corev1.PersistentVolume) {
					v.UID, v.ResourceVersion = types.UID(fmt.Sprint("gone-", n)), "1"
				})
				crowd.Observe(gone)
				crowd.ObserveDeleted(gone)
				crowd.create(t, bindingtest.Volume(gone.Name, "1Mi"))
			}
			synctest.Wait()

			crowd.create(t, bindingtest.Volume("volume", "1Gi"))
			crowd.create(t, bindingtest.Claim("other", "data", "1Gi"))
			assert.LessOrEqual(t, crowd.bound(obj.ClaimKey("other", "data")), time.Millisecond)
			time.Sleep(time.Hour)
			for n := range many {
				assert.Equal(t, corev1.VolumeAvailable, server.Volume(fmt.Sprint("again-", n)).Status.Phase, "and each comes to its end all the same")
			}
			assert.Greater(t, lists, 10, "V1 a volume in place of another; those that wait at one time share a list")
		})
	})
}

// A client panics in the sync for which others wait. Whoever is next is told, also by a driver that would have recovered.
func TestW9WhoWaitsForASyncThatPanicsIsTold(t *testing.T) {
	for name, panics := range map[string]func(*binding.Controller, *bindingtest.Client, func()){
		"B6 the client": func(_ *binding.Controller, client *bindingtest.Client, meanwhile func()) {
			var once sync.Once
			client.Use(func(call *bindingtest.Call, do func() error) error {
				once.Do(func() {
					meanwhile()
					panic("a defect")
				})
				return do()
			})
		},
		"B6 the recorder": func(controller *binding.Controller, client *bindingtest.Client, meanwhile func()) {
			var once sync.Once
			controller.Recorder = records(func(decision.Event) {
				once.Do(func() {
					meanwhile()
					panic("a defect")
				})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := bindingtest.NewServer()
			client := server.NewClient("controller")
			controller := &binding.Controller{Client: client, Workers: 1}
			for _, namespace := range []string{"a", "b", "c"} {
				for _, object := range []obj.Object{bindingtest.Volume(namespace, "10Gi"), bindingtest.Claim(namespace, "data", "5Gi")} {
					created, err := server.Create(t.Context(), object)
					require.NoError(t, err)
					controller.Observe(created)
				}
			}
			lost, err := server.Create(t.Context(), bindingtest.Claim("a", "lost", "5Gi", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.VolumeName, c.Annotations = "gone", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
			}))
			require.NoError(t, err)
			controller.Observe(lost)
			panics(controller, client, func() {
				for _, namespace := range []string{"b", "c"} {
					result, err := controller.Sync(t.Context(), obj.ClaimKey(namespace, "data"))
					require.NoError(t, err)
					require.Empty(t, result, "W9 it waits for the only worker")
				}
			})
			result, err := controller.Sync(t.Context(), obj.ClaimKey("a", "lost"))
			require.ErrorContains(t, err, "panicked: a defect")
			for queue := result.Next; len(queue) > 0; queue = queue[1:] {
				result, err := controller.Sync(t.Context(), queue[0])
				require.NoError(t, err)
				queue = append(queue, result.Next...)
			}
			for _, namespace := range []string{"b", "c"} {
				assert.Equal(t, corev1.ClaimBound, server.Claim(namespace, "data").Status.Phase, namespace)
			}
		})
	}
}

// records is a recorder.
type records func(decision.Event)

func (r records) Record(event decision.Event) { r(event) }
