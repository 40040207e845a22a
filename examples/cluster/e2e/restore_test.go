package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

const (
	kept       = 100                    // claims that the snapshot has: half with volumes made for them, half with static ones
	deleted    = 50                     // of them, between snapshot and restore
	unfinished = 10                     // of these, whose deleter is at work when the restore comes, or has said that it is
	resync     = time.Second            // of the Runner
	askAgain   = 300 * time.Millisecond // what a deleter that is at work says
)

// An etcd that is restored gives back objects that are known to be gone. Whoever went by what it remembers would delete
// the storage of claims that exist: here nothing is deleted after the restore but for claims deleted after it, and the
// Runner, which is never restarted, goes on with its work. The storage of the claims that were deleted before the restore
// is gone for good, and their volumes are empty shells, which say so: that is what a restore means, and nobody can undo it.
func TestEtcdIsRestored(t *testing.T) {
	a, storage := newAPI(t), newArchive()
	run(t, &clientgo.Runner{
		Clientset: a,
		Resync:    resync,
		Options:   decision.Options{Protection: decision.ProtectionOn},
		Hooks: hooks.Set{
			Provisioners:   map[string]hooks.Provisioner{"example.com/disks": storage},
			Deleters:       map[string]hooks.Deleter{"example.com/disks": storage},
			SourceDeleters: map[string]hooks.Deleter{"hostPath": storage},
			MaxConcurrent:  2 * unfinished,
			Timeout:        10 * time.Second, // after the restore no deleter is called for that long and hooks.Margin
		},
	})
	require.NoError(t, createAll(t.Context(), a, keptObjects()))
	a.settles(t, kept, 0)
	all := a.versions(t)
	snapshot, err := plane.Snapshot()
	require.NoError(t, err)

	given(volume("later", "1Gi", policy(corev1.PersistentVolumeReclaimDelete), forClaim("later")), claim("later", "1Gi"))(t, a)
	a.settles(t, kept+1, 0)
	emptied := a.volumesOf(t, names(0, deleted))
	storage.delay(a.volumesOf(t, names(deleted-unfinished, deleted)))
	a.deleteClaims(t, names(0, deleted))
	eventually(t, storage.called(deleted))
	a.settles(t, kept+1-deleted, unfinished)

	restored, err := plane.Restore(snapshot)
	require.NoError(t, err)
	began := time.Now()
	storage.finish()
	others := func(versions []string) []string { // than those that are announced again, or noted to have no storage
		return slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
			return slices.ContainsFunc(emptied, func(name string) bool { return strings.HasPrefix(version, "pv/"+name+" ") })
		})
	}
	require.Equal(t, others(all), others(a.versions(t)), "the restore brings all back, and takes what came later")
	after(5 * resync) // what a wrong memory does, it does by then
	assert.Empty(t, storage.since(restored), "X2 a deleter was called for a claim that exists")
	assert.Equal(t, others(all), others(a.versions(t)), "X8 what was settled is settled: not one write")
	for _, name := range emptied {
		kept, err := a.Get(t.Context(), obj.VolumeKey(name))
		require.NoError(t, err)
		assert.Contains(t, kept.GetAnnotations(), reclaim.AnnouncementAnnotation, "W8 its deleter may go on, or has deleted its storage")
	}

	again := names(deleted-3, deleted+2) // three of them are deleted for the second time
	stay := append(names(deleted-unfinished, deleted-3), names(deleted+2, kept)...)
	uids, left := a.uidsOf(t, again), a.volumesOf(t, madeOf(stay))
	a.deleteClaims(t, again)
	given(volume("last", "1Gi", policy(corev1.PersistentVolumeReclaimDelete), forClaim("last")), claim("last", "1Gi"))(t, a)
	a.settles(t, kept-len(again)+1, 0)
	t.Logf("all was settled %s after the restore, %s of them spent waiting for what must not happen", time.Since(began), 5*resync)
	assert.ElementsMatch(t, uids, storage.since(restored), "R3 the deleter is called for each claim deleted since, and for no other")
	assert.ElementsMatch(t, left, storage.names(), "R3 their storage is gone; that whose deletion was in progress is not, for nobody asked for it again")
}

// keptObjects are claims, half of them with static volumes that are pre-bound to them.
func keptObjects() []obj.Object {
	objects := []obj.Object{class("own", provisioner("example.com/disks"))}
	all := names(0, kept)
	made := madeOf(all)
	for _, name := range all {
		if slices.Contains(made, name) {
			objects = append(objects, claim(name, "1Gi", inClass("own")))
		} else {
			objects = append(objects, claim(name, "1Gi"), volume(name, "1Gi", policy(corev1.PersistentVolumeReclaimDelete), forClaim(name)))
		}
	}
	return objects
}

// madeOf are those of the claims whose volumes are provisioned.
func madeOf(names []string) (made []string) {
	for _, name := range names {
		if (name[len(name)-1]-'0')%2 == 1 {
			made = append(made, name)
		}
	}
	return made
}

// names are those of the claims from one number to another.
func names(from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	return names
}

// archive is storage that remembers when it was asked to delete some, and whose that was.
type archive struct {
	disks
	mu      sync.Mutex
	calls   []deleterCall
	delayed sets.Set[string] // volumes whose storage takes long to delete
	over    chan struct{}    // closed when it takes long no more
}

type deleterCall struct {
	claim types.UID
	at    time.Time
}

func newArchive() *archive {
	return &archive{disks: disks{made: map[string]bool{}}, over: make(chan struct{})}
}

// Delete of what takes long blocks for every second volume, and for the others answers that it goes on.
func (s *archive) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	volume := request.Volume
	s.mu.Lock()
	s.calls = append(s.calls, deleterCall{volume.Spec.ClaimRef.UID, time.Now()})
	delayed, blocks := s.delayed.Has(volume.Name), volume.Annotations[provisionedBy] == ""
	s.mu.Unlock()
	switch {
	case delayed && blocks:
		select {
		case <-s.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	case delayed:
		select {
		case <-s.over:
		default:
			return &hooks.Error{Meaning: hooks.InProgress, After: askAgain}
		}
	}
	return s.disks.Delete(ctx, request)
}

func (s *archive) delay(volumes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayed = sets.New(volumes...)
}

func (s *archive) finish() { close(s.over) }

// called says what is amiss as long as deletion was not asked for on behalf of so many claims.
func (s *archive) called(n int) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		claims := sets.New[types.UID]()
		for _, call := range s.calls {
			claims.Insert(call.claim)
		}
		if claims.Len() == n {
			return "", nil
		}
		return fmt.Sprintf("deleters were called for %d claims", claims.Len()), nil
	}
}

// since are the claims for which a deleter was called after that time.
func (s *archive) since(at time.Time) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var claims []types.UID
	for _, call := range s.calls {
		if call.at.After(at) {
			claims = append(claims, call.claim)
		}
	}
	return claims
}

// versions are the UIDs and versions of all claims and volumes.
func (a api) versions(t *testing.T) []string {
	t.Helper()
	var versions []string
	for _, kind := range []obj.Kind{obj.KindVolume, obj.KindClaim} {
		keys, err := a.keys(t.Context(), kind)
		require.NoError(t, err)
		for _, key := range keys {
			object, err := a.Get(t.Context(), key)
			require.NoError(t, err)
			versions = append(versions, fmt.Sprintf("%s %s %s", key, object.GetUID(), object.GetResourceVersion()))
		}
	}
	return versions
}

func (a api) uidsOf(t *testing.T, claims []string) (uids []types.UID) {
	t.Helper()
	for _, name := range claims {
		uids = append(uids, a.claim(t, name).UID)
	}
	return uids
}

func (a api) volumesOf(t *testing.T, claims []string) (volumes []string) {
	t.Helper()
	for _, name := range claims {
		volumes = append(volumes, a.claim(t, name).Spec.VolumeName)
	}
	return volumes
}

func (a api) deleteClaims(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, a.Delete(t.Context(), obj.ClaimKey(ns, name), metav1.DeleteOptions{}))
	}
}

// settles waits until there are so many claims, each Bound to a volume that is Bound to it, and so many volumes besides.
func (a api) settles(t *testing.T, pairs, others int) {
	t.Helper()
	eventually(t, func(ctx context.Context) (string, error) {
		claims, err := a.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		volumes, err := a.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		bound := 0
		for _, claim := range claims.Items {
			if slices.ContainsFunc(volumes.Items, func(volume corev1.PersistentVolume) bool { return isPair(&claim, &volume) }) {
				bound++
			}
		}
		if bound == pairs && len(claims.Items) == pairs && len(volumes.Items) == pairs+others {
			return "", nil
		}
		text, err := a.state(ctx)
		return fmt.Sprintf("%d of %d claims are Bound and %d volumes exist, not %d and %d: %s",
			bound, len(claims.Items), len(volumes.Items), pairs, pairs+others, text), err
	})
}

// isPair reports whether claim and volume are Bound to each other, and stay so.
func isPair(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return claim.Spec.VolumeName == volume.Name && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim.UID &&
		claim.Status.Phase == corev1.ClaimBound && volume.Status.Phase == corev1.VolumeBound &&
		claim.DeletionTimestamp == nil && volume.DeletionTimestamp == nil
}
