package schedulerplugin_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/schedulerplugin"
)

// What the plugin takes of a scheduling cycle, where each node has as many local volumes as there are per node: PreFilter, Filter on
// every node, Reserve and Unreserve.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct{ nodes, volumes int }{{100, 1_000}, {1_000, 10_000}, {5_000, 20_000}} {
		b.Run(fmt.Sprintf("%d×%d", size.nodes, size.volumes), func(b *testing.B) {
			set := fake.NewClientset()
			factory := informers.NewSharedInformerFactory(set, 0)
			made, err := schedulerplugin.New(b.Context(), nil, handle{set: set, informers: factory})
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(context.Background())
			factory.StartWithContext(ctx)
			b.Cleanup(func() { cancel(); factory.Shutdown() })
			factory.WaitForCacheSyncWithContext(ctx)
			core := factory.Core().V1()
			require.NoError(b, core.PersistentVolumeClaims().Informer().GetStore().Add(claim("data", "local")))
			require.NoError(b, factory.Storage().V1().StorageClasses().Informer().GetStore().Add(waiting("local", "kubernetes.io/no-provisioner")))
			nodes := make([]*corev1.Node, size.nodes)
			for i := range nodes {
				nodes[i] = bindingtest.Node(fmt.Sprintf("node-%d", i), "zone")
			}
			for i := range size.volumes {
				volume := disk(fmt.Sprintf("disk-%d", i), "10Gi", nodes[i%size.nodes].Name)
				volume.ResourceVersion = strconv.Itoa(i + 1)
				require.NoError(b, core.PersistentVolumes().Informer().GetStore().Add(volume))
			}
			infos, plugin, web := infosOf(nodes...), made.(*schedulerplugin.Plugin), pod("web", "data")
			cycle := func() {
				state := newCycle()
				_, status := plugin.PreFilter(ctx, state, web, infos)
				require.NoError(b, status.AsError())
				for _, info := range infos {
					if status := plugin.Filter(ctx, state, web, info); !status.IsSuccess() {
						require.Equal(b, framework.Success, status.Code(), status.Message())
					}
				}
				require.NoError(b, plugin.Reserve(ctx, state, web, "node-7").AsError())
				plugin.Unreserve(ctx, state, web, "node-7")
			}
			cycle()
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
	}
}
