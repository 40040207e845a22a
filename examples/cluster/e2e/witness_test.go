package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// witness watches all claims and volumes and notes what must never happen while nothing is deleted (X1, X2, X4): a
// claim that is Lost, a volume that is given up, or taken from the claim that names it.
type witness struct {
	mu       sync.Mutex
	versions map[types.UID]string // seen last
	users    map[string]types.UID // of a volume, the claim it was given to last
	lost     map[types.UID]string // claims that a volume was taken from
	names    map[types.UID]string // of a claim, the volume it names, which it does for ever
	writes   int
	crimes   []string
	changed  chan struct{} // something was written; a hint
}

// watchOver has a witness watch until the test ends.
func watchOver(t testing.TB, a api) *witness {
	t.Helper()
	w := &witness{
		versions: map[types.UID]string{},
		users:    map[string]types.UID{},
		lost:     map[types.UID]string{},
		names:    map[types.UID]string{},
		changed:  make(chan struct{}, 1),
	}
	a.observeAll(t, w.see)
	return w
}

func (w *witness) see(object metav1.Object) {
	w.note(object)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *witness) note(object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(object)
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		w.noteVolume(object)
	case *corev1.PersistentVolumeClaim:
		w.names[object.UID] = object.Spec.VolumeName
		if object.Status.Phase == corev1.ClaimLost {
			w.crimes = append(w.crimes, "claim "+object.Name+" is Lost")
		}
	}
}

func (w *witness) count(object metav1.Object) {
	if w.versions[object.GetUID()] != object.GetResourceVersion() {
		w.versions[object.GetUID()] = object.GetResourceVersion()
		w.writes++
	}
}

func (w *witness) noteVolume(volume *corev1.PersistentVolume) {
	switch volume.Status.Phase {
	case corev1.VolumeReleased, corev1.VolumeFailed:
		w.crimes = append(w.crimes, fmt.Sprintf("volume %s is %s", volume.Name, volume.Status.Phase))
	}
	user := types.UID("")
	if ref := volume.Spec.ClaimRef; ref != nil {
		user = ref.UID
	}
	if before := w.users[volume.Name]; before != "" && before != user {
		w.lost[before] = volume.Name
	}
	w.users[volume.Name] = user
}

// seen is how many writes the witness knows of.
func (w *witness) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

func (w *witness) assertNoCrime(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Empty(t, w.crimes)
	for claim, volume := range w.lost { // one that it does not name was too many for it (V4)
		assert.NotEqual(t, volume, w.names[claim], "volume %s was taken from the claim that names it, %s", volume, claim)
	}
}

// assertOneToOne asserts that n claims are Bound, each to a volume that is Bound to it.
func assertOneToOne(t testing.TB, a api, n int) {
	t.Helper()
	claims, err := a.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, claims.Items, n)
	volumes, err := a.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	users := map[string]*corev1.ObjectReference{}
	for _, volume := range volumes.Items {
		if volume.Status.Phase == corev1.VolumeBound {
			users[volume.Name] = volume.Spec.ClaimRef
		}
	}
	assert.Len(t, users, n, "volumes that are Bound")
	for _, claim := range claims.Items {
		user := users[claim.Spec.VolumeName]
		if assert.NotNil(t, user, "claim %s has volume %q, which is not Bound", claim.Name, claim.Spec.VolumeName) {
			assert.Equal(t, claim.UID, user.UID, "volume %s is not that of claim %s", claim.Spec.VolumeName, claim.Name)
		}
		assert.Equal(t, corev1.ClaimBound, claim.Status.Phase, claim.Name)
		assert.Contains(t, claim.Annotations, bindCompleted, claim.Name)
	}
}
