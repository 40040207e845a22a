package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/hooks"
)

// lines is the output of a logger.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with returns the lines that have all of these in them.
func (l *lines) with(parts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// storage is a provisioner and a deleter that count their calls.
type storage struct {
	provision        func(*corev1.PersistentVolume) error
	deletion         error
	asked, discarded atomic.Int32
}

func (s *storage) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	s.asked.Add(1)
	return request.Volume, s.provision(request.Volume)
}

func (s *storage) Delete(context.Context, hooks.ReclaimRequest) error {
	s.discarded.Add(1)
	return s.deletion
}

func (s *storage) hooks() hooks.Set {
	return hooks.Set{Provisioners: map[string]hooks.Provisioner{"example.com/disks": s}, Deleters: map[string]hooks.Deleter{"example.com/disks": s}}
}

// startWithDisks runs a Runner with hooks, and a claim of their class.
func startWithDisks(t *testing.T, disks *storage, log *lines) *running {
	return start(t, newServer(t,
		bindingtest.Class("disks", func(class *class) { class.Provisioner = "example.com/disks" }),
		bindingtest.Claim("default", "data", "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("disks") }),
	), func(r *clientgo.Runner) { r.Hooks, r.Logger = disks.hooks(), log.logger() })
}

// again changes the claim until the count has grown to n: with each change it is tried again, before the back-off is over.
func (r *running) again(count *atomic.Int32, n int32) {
	r.t.Helper()
	step := 0
	r.eventually(func() bool {
		claim := r.Claim("default", "data")
		claim.Labels = map[string]string{"step": strconv.Itoa(step)}
		step++
		_, _ = r.Update(r.t.Context(), claim) // a conflict is a change as well
		return count.Load() >= n
	}, "it is tried again")
}

func TestAHookThatFailsIsLoggedOnce(t *testing.T) {
	disks, log := &storage{provision: func(*corev1.PersistentVolume) error { return errors.New("the array is full") }}, &lines{}
	r := startWithDisks(t, disks, log)
	r.again(&disks.asked, 4)
	require.NoError(t, r.stop())
	found := log.with("level=WARN", "pvc/default/data", "ProvisioningFailed", "hook=example.com/disks", "the array is full")
	assert.Len(t, found, 1, "%s", log.text.String())
}

func TestALoopOfMakeAndUndoIsLoggedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		made func(*corev1.PersistentVolume)
		says string
	}{
		"a volume without the node affinity that it needs": {func(volume *corev1.PersistentVolume) {
			volume.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
		}, "spec.nodeAffinity"},
		"a volume that does not fit": {func(volume *corev1.PersistentVolume) {
			volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/disk"}
			volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}, "does not fit"},
		"a volume without a source": {func(*corev1.PersistentVolume) {}, "without a source"},
	} {
		t.Run(name, func(t *testing.T) {
			disks, log := &storage{provision: func(volume *corev1.PersistentVolume) error {
				test.made(volume)
				return nil
			}}, &lines{}
			r := startWithDisks(t, disks, log)
			r.again(&disks.discarded, 3)
			require.NoError(t, r.stop())
			found := log.with("level=WARN", "pvc/default/data", "ProvisioningFailed", "hook=example.com/disks", test.says)
			assert.Len(t, found, 1, "%s", log.text.String())
		})
	}
}

func TestADeleterThatFailsIsLoggedOnce(t *testing.T) {
	disks := &storage{deletion: errors.New("the array is away"), provision: func(volume *corev1.PersistentVolume) error {
		volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/disk"}
		return nil
	}}
	log := &lines{}
	r := startWithDisks(t, disks, log)
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	volume := r.Claim("default", "data").Spec.VolumeName
	remove(t, r.Server, "data")
	r.eventually(func() bool { return disks.discarded.Load() >= 2 }, "it is tried again")
	require.NoError(t, r.stop())
	found := log.with("level=WARN", "pv/"+volume, "VolumeFailedDelete", "hook=example.com/disks", "the array is away")
	assert.Len(t, found, 1, "%s", log.text.String())
}

// What changes is said again, and each object has its own line.
func TestAWarningThatChangesIsLoggedAgain(t *testing.T) {
	disks, log := &storage{}, &lines{}
	disks.provision = func(*corev1.PersistentVolume) error {
		return fmt.Errorf("only %d disks are left", min(disks.asked.Load(), 3))
	}
	r := startWithDisks(t, disks, log)
	r.again(&disks.asked, 5)
	require.NoError(t, r.stop())
	for left := 1; left <= 3; left++ {
		assert.Len(t, log.with(fmt.Sprintf("only %d disks are left", left)), 1)
	}
}
