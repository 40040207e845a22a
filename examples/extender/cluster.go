package extender

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/pvbind/pvbind/binding/clientgo"
)

// Cluster is a cache of a cluster, and of what was decided for pods that are being bound. Make one with Watch. It is safe
// for concurrent use.
type Cluster struct {
	*clientgo.Executor

	nodes corelisters.NodeLister
	pods  corelisters.PodLister
	stop  func()
}

// Watch begins to watch all that planning depends on, and returns once the caches are filled. It watches until Stop is
// called; the context bounds the beginning only.
func Watch(ctx context.Context, clientset kubernetes.Interface) (*Cluster, error) {
	c := &Cluster{}
	factory := clientgo.NewSchedulingInformers(clientset, c.serverWentBack)
	var err error
	if c.Executor, err = clientgo.NewExecutor(clientset, factory); err != nil {
		return nil, err
	}
	c.nodes, c.pods = factory.Core().V1().Nodes().Lister(), factory.Core().V1().Pods().Lister()
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = func() {
		end()
		clientgo.Shutdown(factory)
	}
	factory.StartWithContext(watching)
	if err := c.filled(ctx, factory); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// filled waits until all caches are, and their objects were handled.
func (c *Cluster) filled(ctx context.Context, factory informers.SharedInformerFactory) error {
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the list of %s did not come: %w", kind, ctx.Err())
		}
	}
	if !c.Synced(ctx) {
		return ctx.Err()
	}
	return nil
}

// Stop ends what Watch has started.
func (c *Cluster) Stop() { c.stop() }

func (c *Cluster) serverWentBack(kind string, err error) {
	slog.Warn("the server went back in time; all is listed anew", "kind", kind, "error", err)
	c.ServerWentBack()
}
