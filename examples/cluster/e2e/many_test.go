package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding"
)

// atOnce is how many requests the tests make at the same time.
const atOnce = 64

// createAll creates the objects in no particular order.
func createAll(ctx context.Context, a api, objects []binding.Object) error {
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
func pairsOf(n int) []binding.Object {
	return pairs(n, func(i int) string { return fmt.Sprintf("%dMi", 1000+i) })
}

// likePairs are n claims and n volumes that are all alike.
func likePairs(n int) []binding.Object {
	return pairs(n, func(int) string { return "1Gi" })
}

func pairs(n int, size func(int) string) []binding.Object {
	var objects []binding.Object
	for i := range n {
		name := fmt.Sprintf("%04d", i)
		objects = append(objects, volume("v"+name, size(i)), claim("c"+name, size(i)))
	}
	return objects
}

// progress is how far the claims of a cluster have come.
type progress struct {
	bound map[string]string // claim to volume
	last  time.Time         // when the last one was seen to become Bound
	err   error
}

// watchBound looks on until n claims of the default namespace are Bound, or none becomes so for the time given. What
// it returns waits for that.
func watchBound(t testing.TB, a api, n int, idle time.Duration) (wait func() progress) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, err := a.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	done := make(chan progress, 1)
	go func() {
		defer cancel()
		done <- follow(changes.ResultChan(), n, idle)
	}()
	return func() progress {
		seen := <-done
		require.NoError(t, seen.err)
		return seen
	}
}

func follow(changes <-chan watch.Event, n int, idle time.Duration) progress {
	seen := progress{bound: map[string]string{}, last: time.Now()}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for len(seen.bound) < n {
		select {
		case change, ok := <-changes:
			if !ok {
				seen.err = errors.New("the watch ended")
				return seen
			}
			if seen.note(change) {
				timer.Reset(idle)
			}
		case <-timer.C:
			return seen
		}
	}
	return seen
}

func (p *progress) note(change watch.Event) bool {
	claim, ok := change.Object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound || p.bound[claim.Name] != "" {
		return false
	}
	p.bound[claim.Name], p.last = claim.Spec.VolumeName, time.Now()
	return true
}
