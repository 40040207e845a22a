package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/obj"
)

// atOnce is how many requests the tests make at the same time.
const atOnce = 64

// createAll creates the objects in no particular order.
func createAll(ctx context.Context, a api, objects []obj.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, object := range objects {
		group.Go(func() error {
			_, err := a.Create(ctx, object)
			return err
		})
	}
	return group.Wait()
}

// pairsOf are n claims and n volumes of the same n sizes: each claim is bound only if none takes a volume larger than it
// must.
func pairsOf(n int) []obj.Object {
	return pairs(n, func(i int) string { return fmt.Sprintf("%dMi", 1000+i) })
}

// likePairs are n claims and n volumes that are all alike.
func likePairs(n int) []obj.Object {
	return pairs(n, func(int) string { return "1Gi" })
}

func pairs(n int, size func(int) string) []obj.Object {
	var objects []obj.Object
	for i := range n {
		name := fmt.Sprintf("%04d", i)
		objects = append(objects, volume("v"+name, size(i)), claim("c"+name, size(i)))
	}
	return objects
}

// progress is how far the claims of a cluster have come.
type progress struct {
	bound map[string]string // claim to volume
	first time.Time         // when the first one was seen to become Bound
	last  time.Time         // when the last one was
}

// watchBound looks on until n claims of the default namespace are Bound, or none becomes so for the time given. What
// it returns waits for that.
func watchBound(t testing.TB, a api, n int, idle time.Duration) (wait func() progress) {
	t.Helper()
	changes, over := make(chan *corev1.PersistentVolumeClaim), make(chan struct{})
	stop := observe(t, a.factory().Core().V1().PersistentVolumeClaims().Informer(), func(object metav1.Object) {
		if claim := object.(*corev1.PersistentVolumeClaim); claim.Status.Phase == corev1.ClaimBound {
			select {
			case changes <- claim:
			case <-over: // nobody listens any more
			}
		}
	})
	done := make(chan progress, 1)
	go func() {
		done <- follow(changes, n, idle)
		close(over)
	}()
	return func() progress {
		defer stop()
		return <-done
	}
}

func follow(changes <-chan *corev1.PersistentVolumeClaim, n int, idle time.Duration) progress {
	seen := progress{bound: map[string]string{}, last: time.Now()}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for len(seen.bound) < n {
		select {
		case claim := <-changes:
			if seen.bound[claim.Name] == "" {
				if len(seen.bound) == 0 {
					seen.first = time.Now()
				}
				seen.bound[claim.Name], seen.last = claim.Spec.VolumeName, time.Now()
				timer.Reset(idle)
			}
		case <-timer.C:
			return seen
		}
	}
	return seen
}

func (a api) factory() informers.SharedInformerFactory {
	return informers.NewSharedInformerFactory(a, 0)
}

// observe tells of each object and of each change of one, until it is stopped or the test ends.
func observe(t testing.TB, informer cache.SharedIndexInformer, tell func(metav1.Object)) (stop func()) {
	t.Helper()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(object.(metav1.Object)) },
		UpdateFunc: func(_, object any) { tell(object.(metav1.Object)) },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// observeAll observes all volumes and claims until the test ends.
func (a api) observeAll(t testing.TB, tell func(metav1.Object)) {
	t.Helper()
	core := a.factory().Core().V1()
	observe(t, core.PersistentVolumes().Informer(), tell)
	observe(t, core.PersistentVolumeClaims().Informer(), tell)
}
