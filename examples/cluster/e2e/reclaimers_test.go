package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
)

const (
	shortChurn = 45 * time.Second
	longChurn  = 10 * time.Minute
	perKind    = 4 // volumes of a kind, and a few claims more than that
)

// R8, X2: two Runners without leader election delete and recycle under churn. No call takes effect on storage in use, whether
// that refuses older tokens or takes any.
func TestTwoReclaimAtOnce(t *testing.T) {
	a := newAPI(t)
	storage, seen := newSharedStorage(a), viewOf(t, a)
	tenants := tenantsOfAllKinds(t, a, seen, storage)
	var taps []*tap
	for _, name := range []string{"first", "second"} {
		taps = append(taps, runTapped(t, name, storage.hooksFor(name)))
	}
	lasts := shortChurn
	if os.Getenv("PVBIND_MODE") == "long" {
		lasts = longChurn
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, tenant := range tenants {
		group.Go(func() error { return tenant.live(ctx) })
	}
	require.NoError(t, group.Wait())
	ended := time.Now()
	eventually(t, a.onlyAvailable)

	counts, lines, crimes := storage.report()
	t.Logf("%s of churn, and %s until all was reclaimed:%s\n\t%v\n\t%v", lasts, time.Since(ended).Round(time.Millisecond), lines, taps[0], taps[1])
	assert.Empty(t, crimes, "X2 no storage in use was deleted or scrubbed, and none reached another claim with data on it")
	t.Logf("%d disks left behind (P2)", storage.unrecorded(a.recyclable(t)))
	for _, p := range taps {
		for _, hook := range []string{"deleter", "recycler"} {
			for _, kind := range []string{"takes any token", "refuses older tokens"} {
				assert.Greater(t, counts[fmt.Sprintf("%s calls of %s on storage that %s", hook, p.identity, kind)], 5, "both did such work")
			}
		}
		p.assertMet(t)
	}
}

// runTapped has a Runner of that identity work until the test ends.
func runTapped(t *testing.T, identity string, set hooks.Set) *tap {
	t.Helper()
	client, p := tapped(t, identity)
	informers := clientgo.NewInformers(client, clientgo.PodsWatched, set, func(kind string, err error) {
		t.Errorf("%s: %s: %v", identity, kind, err)
	})
	seen := func(object any) {
		if volume, ok := object.(*corev1.PersistentVolume); ok {
			p.see(volume)
		}
	}
	_, err := informers.Core().V1().PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, object any) { seen(object) },
	})
	require.NoError(t, err)
	run(t, &clientgo.Runner{
		Clientset: client,
		Informers: informers,
		Options:   decision.Options{Protection: decision.ProtectionOn, Identity: identity},
		Hooks:     set,
		Logger:    slog.New(slog.DiscardHandler), // each conflict is a warning
	})
	return p
}

// tenantsOfAllKinds creates classes, and volumes that go from claim to claim, and returns tenants: of these volumes, which are
// recycled; of volumes that they make anew under the same name, once they are deleted; of volumes that are provisioned.
func tenantsOfAllKinds(t *testing.T, a api, seen *view, storage tenantStorage) (tenants []tenant) {
	t.Helper()
	for _, suffix := range []string{"disks", refusing} {
		given(class("recycled-"+suffix), class("anew-"+suffix), class("made-"+suffix, provisioner("example.com/"+suffix)))(t, a)
		of := func(kind string, i int, volume func(int) pv) tenant {
			name := fmt.Sprintf("%s-%s-%d", kind, suffix, i)
			return tenant{a, seen, storage, claim(name, "1Gi", inClass(kind+"-"+suffix)), volume}
		}
		for i := range perKind {
			name := fmt.Sprintf("v-recycled-%s-%d", suffix, i)
			shared := volume(name, "1Gi", ofClass("recycled-"+suffix), policy(corev1.PersistentVolumeReclaimRecycle))
			storage.add(shared)
			given(shared)(t, a)
			anew := volume(fmt.Sprintf("v-anew-%s-%d", suffix, i), "1Gi", ofClass("anew-"+suffix), policy(corev1.PersistentVolumeReclaimDelete))
			tenants = append(tenants, of("anew", i, func(int) pv { return anew }), of("made", i, nil))
		}
		for i := range perKind + 3 {
			tenants = append(tenants, of("recycled", i, nil))
		}
	}
	return tenants
}

func (a api) recyclable(t *testing.T) (names []string) {
	t.Helper()
	volumes, err := a.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, volume := range volumes.Items {
		names = append(names, volume.Name)
	}
	return names
}

// assertMet asserts that the Runner met what two at once is about.
func (p *tap) assertMet(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Greater(t, p.conflicts, 20, "%s: writes that the other was faster with", p.identity)
	assert.Greater(t, p.outrun, 0, "%s: announcements that the other was faster with", p.identity)
	assert.Greater(t, len(p.others), 20, "%s: announcements of the other that it saw", p.identity)
}
