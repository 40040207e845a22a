package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// lines are what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) count(of string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, of) {
			n++
		}
	}
	return n
}

func createPair(t *testing.T, server *apitest.Server, namespace, name string) {
	t.Helper()
	for _, object := range []obj.Object{bindingtest.Volume("disk-of-"+name, "10Gi"), bindingtest.Claim(namespace, name, "5Gi")} {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
}

func told(server *apitest.Server) (n int) {
	for _, event := range server.Events() {
		if event.Reason == decision.EventServerWentBack {
			n++
		}
	}
	return n
}

// The manager's cache is blind after a restore, unless its informers list anew. Either way work goes on without a restart.
func TestW8TheManagerGoesOnAfterARestore(t *testing.T) {
	for _, test := range []struct {
		name  string
		cache cache.Options
		blind int
	}{
		{"the cache is blind", cache.Options{}, 1},
		{"the cache has one namespace and is blind", cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}, 1},
		{"the cache lists anew", cache.Options{NewInformer: clientgo.NewInformer}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, log := newServer(t), &lines{}
			createPair(t, server, "default", "data")
			manage(t, server, &controllerruntime.Reconciler{Resync: 50 * time.Millisecond, Recorder: server.Server}, func(o *ctrl.Options) {
				o.Cache, o.Logger = test.cache, funcr.New(log.add, funcr.Options{})
			})
			eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
			snapshot := server.Snapshot()
			createPair(t, server, "default", "lost")
			eventually(t, func() bool { return isBound(server, "lost") }, "another claim is bound, which the backup does not have")
			server.Restore(snapshot)
			eventually(t, func() bool { return told(server) == 1 }, "N it is told")
			createPair(t, server, "default", "later")
			eventually(t, func() bool { return isBound(server, "later") }, "what comes after the restore is seen")
			require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
			eventually(t, func() bool { return server.Volume("disk-of-data").Status.Phase == corev1.VolumeReleased }, "V3 and what goes")
			assert.Equal(t, 1, told(server), "once")
			assert.Equal(t, 1, log.count("nothing is destroyed until every claim"), "once")
			assert.Equal(t, test.blind, log.count("pvbind watches by itself"))
		})
	}
}

// Informers that notice it themselves tell of it at once, before the first check and after the last. So do those of our own that
// take the place of a blind cache's.
func TestW8ASecondRestoreIsTold(t *testing.T) {
	for _, test := range []struct {
		name     string
		resync   time.Duration
		informer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	}{
		{"the cache is blind", 50 * time.Millisecond, nil},
		{"the cache lists anew, and nobody asks", time.Hour, clientgo.NewInformer},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t)
			createPair(t, server, "default", "data")
			manage(t, server, &controllerruntime.Reconciler{Resync: test.resync, Recorder: server.Server}, func(o *ctrl.Options) {
				o.Cache.NewInformer = test.informer
			})
			eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
			for times := 1; times <= 2; times++ {
				lost, later := fmt.Sprint("lost-", times), fmt.Sprint("later-", times)
				snapshot := server.Snapshot()
				createPair(t, server, "default", lost)
				eventually(t, func() bool { return isBound(server, lost) }, "another claim is bound, which the backup does not have")
				server.Restore(snapshot)
				eventually(t, func() bool { return told(server) == times }, "N it is told")
				createPair(t, server, "default", later)
				eventually(t, func() bool { return isBound(server, later) }, "what comes after the restore is seen")
			}
		})
	}
}

// W8, F2: nobody reports the end of a pod that the restore has taken, and that the cache of the manager shows. It keeps no claim.
func TestW8APodThatTheRestoreHasTakenFromAManager(t *testing.T) {
	for name, namespaces := range map[string]map[string]cache.Config{"all namespaces": nil, "some": {"default": {}}} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			createPair(t, server, "default", "data")
			var pods atomic.Pointer[toolscache.SharedIndexInformer]
			reconciler := &controllerruntime.Reconciler{Resync: 50 * time.Millisecond, BindingOptions: decision.Options{Protection: decision.ProtectionOn}}
			manage(t, server, reconciler, func(o *ctrl.Options) {
				o.Cache.DefaultNamespaces = namespaces
				o.Cache.NewInformer = func(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
					informer := toolscache.NewSharedIndexInformer(lw, of, resync, by)
					if _, ok := of.(*corev1.Pod); ok {
						pods.Store(&informer)
					}
					return informer
				}
			})
			eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
			snapshot := server.Snapshot()
			_, err := server.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data"))
			require.NoError(t, err)
			eventually(t, func() bool { return len((*pods.Load()).GetStore().List()) == 1 }, "the pod is shown")
			server.Restore(snapshot)
			createPair(t, server, "default", "later")
			eventually(t, func() bool { return isBound(server, "later") }, "what comes after the restore is seen")
			require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
			eventually(t, func() bool { return server.Claim("default", "data") == nil }, "no pod keeps the claim")
		})
	}
}

// W8, M11: a cache that is blind after a restore shows what it has again and again, as each does from time to time. A class is none of its former versions for that, nor gone.
func TestW8WhatABlindCacheShowsAgainDoesNotCount(t *testing.T) {
	waits := func(class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	server := newServer(t, bindingtest.Class("local", waits))
	createPair(t, server, "default", "data")
	var classes atomic.Pointer[toolscache.SharedIndexInformer]
	reconciler := &controllerruntime.Reconciler{Resync: 50 * time.Millisecond, Recorder: server.Server}
	manage(t, server, reconciler, func(o *ctrl.Options) {
		o.Cache.SyncPeriod = new(time.Second)
		o.Cache.NewInformer = func(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
			informer := toolscache.NewSharedIndexInformer(lw, of, resync, by)
			if _, ok := of.(*storagev1.StorageClass); ok {
				classes.Store(&informer)
			}
			return informer
		}
	})
	eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
	snapshot := server.Snapshot()
	require.NoError(t, server.Delete(t.Context(), obj.Key{Kind: obj.KindClass, Name: "local"}, metav1.DeleteOptions{}))
	again, err := server.Create(t.Context(), bindingtest.Class("local", waits))
	require.NoError(t, err)
	eventually(t, func() bool {
		shown, ok, _ := (*classes.Load()).GetStore().GetByKey("local")
		return ok && shown.(*storagev1.StorageClass).UID == again.GetUID()
	}, "it is made again")
	server.Restore(snapshot)
	createPair(t, server, "default", "later")
	eventually(t, func() bool { return isBound(server, "later") }, "what comes after the restore is seen")
	var shown atomic.Int32
	_, err = (*classes.Load()).AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { shown.Add(1) }})
	require.NoError(t, err)
	eventually(t, func() bool { return shown.Load() >= 2 }, "the blind cache shows its class again")
	for _, object := range []obj.Object{
		bindingtest.Volume("local", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" }),
		bindingtest.Claim("default", "waits", "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("local") }),
	} {
		_, err = server.Create(t.Context(), object)
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		return slices.ContainsFunc(server.Events(), func(event decision.Event) bool {
			return event.On == obj.ClaimKey("default", "waits") && event.Reason == decision.EventWaitForConsumer
		})
	}, "the claim waits for a pod")
	before := shown.Load()
	eventually(t, func() bool { return isBound(server, "waits") || shown.Load() >= before+2 }, "the blind cache shows its class again")
	assert.False(t, isBound(server, "waits"))
}

// Where the manager's cache has some namespaces, no others are looked at after a restore either.
func TestW8OtherNamespacesStayOthers(t *testing.T) {
	server := newServer(t)
	createPair(t, server, "default", "data")
	manage(t, server, &controllerruntime.Reconciler{Resync: 50 * time.Millisecond, Recorder: server.Server}, func(o *ctrl.Options) {
		o.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
	})
	eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
	snapshot := server.Snapshot()
	createPair(t, server, "default", "lost")
	eventually(t, func() bool { return isBound(server, "lost") }, "another claim is bound")
	server.Restore(snapshot)
	createPair(t, server, "other", "theirs")
	createPair(t, server, "default", "later")
	eventually(t, func() bool { return isBound(server, "later") }, "work goes on")
	assert.NotEqual(t, corev1.ClaimBound, server.Claim("other", "theirs").Status.Phase)
}

// Between the server's answer to a list and what is made of it the cache may show what is newer. That is no restore.
func TestW8AWriteDuringAListIsNoRestore(t *testing.T) {
	server := newServer(t)
	live, err := client.NewWithWatch(server.Start(t), client.Options{Scheme: scheme.Scheme, Mapper: kinds()})
	require.NoError(t, err)
	var lists atomic.Int64
	busy := interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if _, volumes := list.(*corev1.PersistentVolumeList); err == nil && volumes && lists.Load() < 4 {
				name := fmt.Sprint("data-", lists.Load())
				createPair(t, server, "default", name)
				eventually(t, func() bool { return isBound(server, name) }, "the cache has shown the volume")
				lists.Add(1)
			}
			return err
		},
	})
	manage(t, server, &controllerruntime.Reconciler{Client: busy, Resync: 10 * time.Millisecond, Recorder: server.Server})
	eventually(t, func() bool { return lists.Load() == 4 }, "lists are compared")
	assert.Zero(t, told(server))
}
