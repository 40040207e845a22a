package schedulerplugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// Name is that of the plugin in a profile.
const Name = "PVBind"

// Plugin gets pods their volumes. Make one with New.
type Plugin struct {
	volumes *clientgo.Executor
	synced  atomic.Bool                             // volumes
	claims  corelisters.PersistentVolumeClaimLister // for hints
	timeout time.Duration
	shape   scheduling.Shape
	places  atomic.Pointer[places] // of the nodes at last

	// What is returned for pods without claims, which must not cost anything. The framework does not change it.
	skip      *framework.Status
	preFlight *framework.PreBindPreFlightResult
}

var (
	_ framework.PreFilterPlugin   = (*Plugin)(nil)
	_ framework.FilterPlugin      = (*Plugin)(nil)
	_ framework.PreScorePlugin    = (*Plugin)(nil)
	_ framework.ScorePlugin       = (*Plugin)(nil)
	_ framework.ReservePlugin     = (*Plugin)(nil)
	_ framework.PreBindPlugin     = (*Plugin)(nil)
	_ framework.EnqueueExtensions = (*Plugin)(nil)
	_ framework.SignPlugin        = (*Plugin)(nil)
)

// New returns a *Plugin on the informers and the client of a framework: it is a PluginFactory of kube-scheduler. The arguments are
// those of a profile, as kube-scheduler hands them to plugins that it does not know, or a *VolumeBindingArgs of
// k8s.io/kube-scheduler/config/v1; nil: the defaults. Of the framework.Handle it uses ClientSet and SharedInformerFactory.
func New(_ context.Context, arguments runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, err := argsOf(arguments, feature.DefaultMutableFeatureGate)
	if err != nil {
		return nil, fmt.Errorf("arguments of plugin %s: %w", Name, err)
	}
	informers := handle.SharedInformerFactory()
	volumes, err := clientgo.NewExecutor(handle.ClientSet(), informers)
	if err != nil {
		return nil, err
	}
	return &Plugin{
		volumes:   volumes,
		claims:    informers.Core().V1().PersistentVolumeClaims().Lister(),
		timeout:   args.timeout,
		shape:     args.shape,
		skip:      framework.NewStatus(framework.Skip),
		preFlight: &framework.PreBindPreFlightResult{AllowParallel: true},
	}, nil
}

// Name returns Name.
func (p *Plugin) Name() string { return Name }

// SignPod signs the volumes of a pod, as VolumeBinding does: two pods of one signature can run on the same nodes. If one plugin of a
// profile signs no pods, the profile has no signatures.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]framework.SignFragment, *framework.Status) {
	return []framework.SignFragment{{Key: framework.VolumesSignerName, Value: framework.VolumesSigner(pod)}}, nil
}

// sync waits until the informers have shown all that exists, which they have but for the first pods.
func (p *Plugin) sync(ctx context.Context) *framework.Status {
	if !p.synced.Load() {
		if !p.volumes.Synced(ctx) {
			return framework.AsStatus(fmt.Errorf("waiting for the informers: %w", context.Cause(ctx)))
		}
		p.synced.Store(true)
	}
	return nil
}
