package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
	"github.com/pvbind/pvbind/reclaim"
)

const (
	shortSwitches = 24
	longSwitches  = 200
	kindsOfClaims = "kept anew made outside"
)

// A cluster goes from kube-controller-manager to a binder of this library and back, again and again. Each is killed in the
// middle of its work, and the other goes on with what it has left half done. Both work on the same storage, which are
// directories: those of volumes that are kept, of volumes that are deleted and made anew, of those that the two provision
// themselves and delete, and of those that an external provisioner does.
func TestSwitchedThereAndBack(t *testing.T) {
	a, random := newAPI(t), seeded(t)
	root, theirs := temporaryRoot(t), directoriesIn(theirRoot)
	seen, storage := viewOf(t, a), &directories{}
	outside := &others{api: a, view: seen, root: root}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	helpers, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var helping errgroup.Group
	helping.Go(func() error { return outside.live(helpers) })
	for _, tenant := range switchedTenants(t, a, seen, storage, root) {
		group.Go(func() error { return tenant.live(ctx) })
	}

	switches := shortSwitches
	if os.Getenv("PVBIND_MODE") == "long" {
		switches = longSwitches
	}
	left := map[string]int{}
	for i := range switches {
		side, process := "ours", (*controlplane.Process)(nil)
		if i%2 == 0 {
			side, process = "kube-controller-manager", startUpstream(t)
		} else {
			process = startHostPathBinder(t, root)
		}
		before := storage.used.Load()
		served := before + 5 + random.Int64N(20)
		enough := func() bool { return storage.used.Load() >= served }
		limit, done := context.WithTimeout(t.Context(), settleWithin)
		require.True(t, seen.await(limit, enough), "%s serves claims: %d", side, storage.used.Load()-before)
		done()
		after(time.Duration(random.IntN(30_000)) * time.Microsecond)
		process.Kill()
		for what, n := range a.halfDone(t) {
			left[side+" leaves "+what] += n
		}
	}
	cancel()
	require.NoError(t, group.Wait())
	lines := ""
	for _, what := range slices.Sorted(maps.Keys(left)) {
		lines += fmt.Sprintf("\n\t%4d times %s", left[what], what)
	}
	t.Logf("switched %d times:%s", switches, lines)
	for _, what := range []string{claimIsNext, namedAndPending, beingMade, claimGoing, released, volumeGoing} {
		assert.NotZero(t, left["kube-controller-manager leaves "+what]+left["ours leaves "+what], "nobody has left %s", what)
	}
	assert.NotZero(t, left["ours leaves "+announced])
	assert.Empty(t, storage.crimes, "X2 no storage of a claim that is Bound was deleted or given to another")
	t.Logf("%d claims used a volume, and the others did %d things; %s", storage.used.Load(), outside.done.Load(), a.summary(t))

	// What is left half done the last time, kube-controller-manager brings to an end: but for claims and volumes that have our finalizers.
	process := startUpstream(t)
	createLast(t, a, "theirs", root)
	a.lastAreBound(t, "theirs", func(key obj.Key, finalizers []string) bool {
		return key.Kind == obj.KindClaim && slices.Contains(finalizers, decision.ProvisioningFinalizer) ||
			key.Kind == obj.KindVolume && slices.Contains(finalizers, reclaim.AnnouncementFinalizer)
	})
	t.Logf("with kube-controller-manager at rest: %s", a.summary(t))
	process.Kill()
	process = startHostPathBinder(t, root)
	createLast(t, a, "ours", root)
	a.lastAreBound(t, "ours", func(obj.Key, []string) bool { return false })
	t.Logf("with ours at rest: %s", a.summary(t))
	a.assertClean(t)

	keys, err := a.keys(t.Context(), obj.KindClaim)
	require.NoError(t, err)
	for _, key := range keys {
		require.NoError(t, a.Delete(t.Context(), key, metav1.DeleteOptions{}))
	}
	eventually(t, a.onlyAvailable)
	process.Kill()
	stop()
	require.NoError(t, helping.Wait())
	volumes, _ := a.all(t)
	t.Logf("provisioned, and left without a volume: %d directories of ours, %d of kube-controller-manager",
		directoriesIn(root)-len(volumes), directoriesIn(theirRoot)-theirs)
	for _, found := range entriesOf(root) {
		made := strings.HasPrefix(found.Name(), "pvc-")
		stored := slices.ContainsFunc(volumes, func(volume corev1.PersistentVolume) bool { return volume.Name == found.Name() })
		assert.True(t, made || stored, "the directory of %s is left behind", found.Name())
	}
}

// theirRoot is where kube-controller-manager makes its own directories.
const theirRoot = "/tmp/hostpath_pv"

// temporaryRoot is a directory below /tmp, where kube-controller-manager deletes what it is told to.
func temporaryRoot(t *testing.T) string {
	root, err := os.MkdirTemp("/tmp", "pvbind-e2e-hostpath-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	before := entriesOf(theirRoot)
	t.Cleanup(func() {
		for _, made := range entriesOf(theirRoot) {
			if !slices.ContainsFunc(before, func(old os.DirEntry) bool { return old.Name() == made.Name() }) {
				_ = os.RemoveAll(filepath.Join(theirRoot, made.Name()))
			}
		}
	})
	return root
}

func startUpstream(t *testing.T) *controlplane.Process {
	t.Helper()
	process, err := plane.ControllerManager([]string{controlplane.Binder, controlplane.ClaimProtection, controlplane.VolumeProtection},
		"--pvclaimbinder-sync-period=1s", "--enable-hostpath-provisioner=true")
	return controlplane.ForTest(t, process, err)
}

// switchedTenants creates the classes and the volumes that are kept, and returns tenants of each kind.
func switchedTenants(t *testing.T, a api, seen *view, storage *directories, root string) (tenants []tenant) {
	t.Helper()
	given(class("kept"), class("anew"), class("made", provisioner(hostPathProvisioner)), class("outside", provisioner(outsideProvisioner)))(t, a)
	for _, volume := range keptVolumes(root) {
		storage.add(volume)
		given(volume)(t, a)
	}
	for kind := range strings.FieldsSeq(kindsOfClaims) {
		for i := range 6 {
			name := fmt.Sprintf("%s-%d", kind, i)
			tenant := tenant{a, seen, storage, claim(name, "1Gi", inClass(kind)), nil}
			if kind == "anew" {
				tenant.volume = func(n int) pv { // of a new name: kube-controller-manager may delete twice by name alone
					return hostVolume(root, fmt.Sprintf("v-%s-%d", name, n), ofClass("anew"), policy(corev1.PersistentVolumeReclaimDelete), forClaim(name))
				}
			}
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

func keptVolumes(root string) (volumes []pv) {
	for i := range 4 {
		volumes = append(volumes, hostVolume(root, fmt.Sprintf("v-kept-%d", i), ofClass("kept"), policy(corev1.PersistentVolumeReclaimRetain)))
	}
	return volumes
}

// What a binder may leave half done.
const (
	claimIsNext     = "a volume with a claimRef whose claim does not name it"
	namedAndPending = "a claim that names its volume and is Pending"
	beingMade       = "a claim that our provisioner is called for"
	claimGoing      = "a claim that is being deleted"
	released        = "a Released volume"
	volumeGoing     = "a volume that is being deleted"
	announced       = "an announcement"
)

// halfDone counts what a binder has left half done.
func (a api) halfDone(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	volumes, claims := a.all(t)
	byUID := map[string]*corev1.PersistentVolumeClaim{}
	for _, claim := range claims {
		byUID[string(claim.UID)] = &claim
		if claim.Spec.VolumeName != "" && claim.Status.Phase == corev1.ClaimPending {
			counts[namedAndPending]++
		}
		if claim.Spec.VolumeName == "" && slices.Contains(claim.Finalizers, decision.ProvisioningFinalizer) {
			counts[beingMade]++
		}
		if claim.DeletionTimestamp != nil {
			counts[claimGoing]++
		}
	}
	for _, volume := range volumes {
		ref := volume.Spec.ClaimRef
		if ref != nil && ref.UID != "" && byUID[string(ref.UID)] != nil && byUID[string(ref.UID)].Spec.VolumeName == "" {
			counts[claimIsNext]++
		}
		if volume.Status.Phase == corev1.VolumeReleased {
			counts[released]++
		}
		if volume.DeletionTimestamp != nil {
			counts[volumeGoing]++
		}
		if _, found := reclaim.AnnouncementOf(&volume); found {
			counts[announced]++
		}
	}
	return counts
}

func (a api) all(t *testing.T) ([]corev1.PersistentVolume, []corev1.PersistentVolumeClaim) {
	t.Helper()
	volumes, err := a.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	claims, err := a.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return volumes.Items, claims.Items
}

func (a api) summary(t *testing.T) string {
	t.Helper()
	volumes, claims := a.all(t)
	half := a.halfDone(t)
	text := fmt.Sprintf("%d volumes, %d claims", len(volumes), len(claims))
	for _, what := range slices.Sorted(maps.Keys(half)) {
		text += fmt.Sprintf(", %d times %s", half[what], what)
	}
	return text
}

// createLast creates a claim of each kind that is to be Bound, and one that cannot be.
func createLast(t *testing.T, a api, who, root string) {
	t.Helper()
	anew := hostVolume(root, "v-last-"+who, ofClass("anew"), policy(corev1.PersistentVolumeReclaimDelete), forClaim("last-"+who+"-anew"))
	require.NoError(t, os.MkdirAll(anew.Spec.HostPath.Path, 0o750))
	given(anew, claim("last-"+who+"-never", "50Gi", inClass("")))(t, a)
	for kind := range strings.FieldsSeq(kindsOfClaims) {
		given(claim("last-"+who+"-"+kind, "1Gi", inClass(kind)))(t, a)
	}
}

// lastAreBound waits until all of the last claims are Bound, but for one that has a reason, and the claims and volumes of the
// tenants are gone, but for those excepted, and volumes that are Available.
func (a api) lastAreBound(t *testing.T, who string, excepted func(obj.Key, []string) bool) {
	t.Helper()
	a.tells(t, "FailedBinding", "last-"+who+"-never")
	eventually(t, func(ctx context.Context) (string, error) {
		volumes, err := a.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		claims, err := a.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		used := map[string]bool{}
		for _, claim := range claims.Items {
			last := strings.HasPrefix(claim.Name, "last-")
			never := strings.HasSuffix(claim.Name, "-never")
			switch {
			case excepted(obj.KeyOf(&claim), claim.Finalizers):
				used[claim.Spec.VolumeName] = true
			case !last:
				return fmt.Sprintf("claim %s is still there: %s %s %v %v", claim.Name, claim.Status.Phase, claim.Spec.VolumeName, claim.Annotations, claim.Finalizers), nil
			case !never && !slices.ContainsFunc(volumes.Items, func(volume corev1.PersistentVolume) bool { return isPair(&claim, &volume) }):
				return fmt.Sprintf("claim %s is %s to %q", claim.Name, claim.Status.Phase, claim.Spec.VolumeName), nil
			case used[claim.Spec.VolumeName]:
				return "volume " + claim.Spec.VolumeName + " is claimed twice", nil
			case !never:
				used[claim.Spec.VolumeName] = true
			}
		}
		for _, volume := range volumes.Items {
			if !used[volume.Name] && !excepted(obj.VolumeKey(volume.Name), volume.Finalizers) && volume.Status.Phase != corev1.VolumeAvailable { // kept, or made for a claim that came no more
				return fmt.Sprintf("volume %s is %s for %v: %v %v", volume.Name, volume.Status.Phase, volume.Spec.ClaimRef, volume.Annotations, volume.Finalizers), nil
			}
		}
		return "", nil
	})
}

// assertClean asserts that nothing of ours is left on any object.
func (a api) assertClean(t *testing.T) {
	t.Helper()
	volumes, claims := a.all(t)
	clean := func(object metav1.Object) {
		for annotation := range object.GetAnnotations() {
			assert.NotContains(t, annotation, "pvbind", object.GetName())
		}
		for _, finalizer := range object.GetFinalizers() {
			assert.NotContains(t, finalizer, "pvbind", object.GetName())
		}
	}
	for _, volume := range volumes {
		clean(&volume)
	}
	for _, claim := range claims {
		clean(&claim)
	}
}

// onlyAvailable says what is amiss as long as there is more than volumes that are Available, and of no claim. Such are also volumes
// made anew whose tenant ended before its claim was bound.
func (a api) onlyAvailable(ctx context.Context) (string, error) {
	text, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(text, ", ") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "pv" || fields[2] != "Available" || len(fields) > 3 && !strings.HasSuffix(fields[3], "?") {
			return text, nil
		}
	}
	return "", nil
}

func directoriesIn(root string) int { return len(entriesOf(root)) }

func entriesOf(root string) []os.DirEntry {
	found, _ := os.ReadDir(root) // there may be none
	return found
}
