package clientgo

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// bindTimes measures how long claims take to become Bound, from the moment they are first seen otherwise.
type bindTimes struct {
	took prometheus.Histogram

	mu   sync.Mutex
	seen map[types.UID]time.Time // the claims that are not Bound
}

func newBindTimes() bindTimes {
	return bindTimes{
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "pvbind_bind_seconds",
			Help:    "Time from when a claim was first seen unbound until it was seen Bound. The count is that of binds.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 16), // to 5 minutes
		}),
		seen: map[types.UID]time.Time{},
	}
}

func (b *bindTimes) observe(object obj.Object) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	since, waits := b.seen[claim.UID]
	switch bound := claim.Status.Phase == corev1.ClaimBound; {
	case bound && waits:
		b.took.Observe(time.Since(since).Seconds())
		delete(b.seen, claim.UID)
	case !bound && !waits:
		b.seen[claim.UID] = time.Now()
	}
}

func (b *bindTimes) forget(object obj.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, object.GetUID())
}
