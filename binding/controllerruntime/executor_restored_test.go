package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// An Executor goes on after a restore, whether the manager's cache is blind or lists anew: it sees what comes, it does not see what
// was lost, and it forgets what its own replies have shown. So it does after a second one.
func TestW8TheExecutorGoesOnAfterARestore(t *testing.T) {
	for name, test := range map[string]struct {
		cache cache.Options
		blind int
	}{
		"the cache is blind":                          {cache.Options{}, 1},
		"the cache has one namespace and is blind":    {cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}, 1},
		"the cache lists anew":                        {cache.Options{NewInformer: clientgo.NewInformer}, 0},
		"the cache is blind, and repeats what it has": {cache.Options{SyncPeriod: new(time.Second)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log := newServer(t, waiting("local", "kubernetes.io/no-provisioner"), local("disk", "10Gi"), claimIn("data", "local")), &lines{}
			volumes := managedExecutor(t, server, 50*time.Millisecond, ctrl.Options{Cache: test.cache, Logger: funcr.New(log.add, funcr.Options{})})
			places := func(pod string) scheduling.Plan {
				plan, err := scheduling.PlanPod(volumes.Request(bindingtest.Pod("default", pod, "", pod)), bindingtest.Node("node", "zone"))
				if err != nil {
					return scheduling.Plan{}
				}
				return plan
			}
			binds := func(pod, volume string) func() bool {
				return func() bool {
					bindings := places(pod).Bindings
					return len(bindings) == 1 && bindings[0].Volume.Name == volume
				}
			}
			eventually(t, binds("data", "disk"), "what was there from the beginning")
			for times := 1; times <= 2; times++ {
				snapshot := server.Snapshot()
				lost := fmt.Sprint("lost-", times)
				for _, object := range []obj.Object{local(lost, "9Gi"), claimIn(lost, "local")} {
					_, err := server.Create(t.Context(), object)
					require.NoError(t, err)
				}
				changed := server.Volume("disk")
				changed.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: lost}
				_, err := server.Update(t.Context(), changed)
				require.NoError(t, err)
				eventually(t, func() bool { return places(lost).Bindings != nil }, "what the backup does not have is shown")
				server.Restore(snapshot)
				eventually(t, func() bool { return log.count("the server went back in time") == times }, "it is told")
				later := fmt.Sprint("later-", times)
				_, err = server.Create(t.Context(), claimIn(later, "local"))
				require.NoError(t, err)
				eventually(t, binds(later, "disk"), "what comes is seen, and what is older than it was; and nothing that is lost")
				eventually(t, func() bool { return places(lost).Bindings == nil }, "nor is the claim that is lost")
				require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", later), metav1.DeleteOptions{}))
			}
			assert.Equal(t, test.blind, log.count("pvbind watches by itself"))
		})
	}
}

// managedExecutor is an Executor in a manager that runs until the test ends.
func managedExecutor(t *testing.T, server *apitest.Server, resync time.Duration, options ctrl.Options) *controllerruntime.Executor {
	t.Helper()
	options.Scheme, options.MapperProvider, options.Metrics = scheme.Scheme, mapper, metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(server.Start(t), options)
	require.NoError(t, err)
	volumes, err := controllerruntime.NewExecutor(t.Context(), mgr)
	require.NoError(t, err)
	volumes.Resync = resync
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.True(t, volumes.Synced(t.Context()))
	return volumes
}

// Nobody asks how far the server is, but a live read shows an older version than the blind cache has.
func TestW8TheExecutorReadsAnOlderVersion(t *testing.T) {
	server, log := newServer(t, waiting("local", "kubernetes.io/no-provisioner"), local("disk", "10Gi"), claimIn("data", "local"),
		bindingtest.Pod("default", "web", "", "data")), &lines{}
	web, err := server.Get(t.Context(), bindingtest.PodKey("default", "web"))
	require.NoError(t, err)
	volumes := managedExecutor(t, server, time.Hour, ctrl.Options{Logger: funcr.New(log.add, funcr.Options{})})
	snapshot := server.Snapshot()
	changed := server.Volume("disk")
	changed.Labels = map[string]string{"lost": "yes"}
	_, err = server.Update(t.Context(), changed)
	require.NoError(t, err)
	eventually(t, func() bool {
		volume, _ := volumes.Volume("disk")
		return volume.Labels["lost"] != ""
	}, "it is shown")
	server.Restore(snapshot)
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = volumes.BindVolumes(ctx, web.(*corev1.Pod), bindingtest.Node("node", "zone"), nil)
		claimRef := server.Volume("disk").Spec.ClaimRef
		return claimRef != nil && claimRef.Name == "data"
	}, "the plan is carried out")
	assert.Equal(t, 1, log.count("the server went back in time"))
}

func local(name, size string) *corev1.PersistentVolume {
	return bindingtest.Volume(name, size, func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
}
