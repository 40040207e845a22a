package binding_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestRhAStuckHookHoldsUpOnlyItsOwnObject has claims whose provisioner does not return and ignores its context,
// more of them than hooks may run at once. They are let go only when every other claim is bound: those that are
// provisioned, slowly, and those that need no hook.
func TestRhAStuckHookHoldsUpOnlyItsOwnObject(t *testing.T) { synctest.Test(t, playAStuckHook) }

func playAStuckHook(t *testing.T) {
	const stuck, slow, static = 6, 12, 12
	s := newStuckStorage(3)
	c := storageDriver(t, s.Storage, func(hookSet *hooks.Set) {
		hookSet.MaxConcurrent, hookSet.Timeout = s.slots, 100*time.Millisecond
	})
	for i := range stuck {
		s.stick(t, c, fmt.Sprintf("stuck-%d", i))
	}
	s.allStuck = func() { // every slot is taken: now come those that are to be bound nevertheless
		for i := range slow {
			s.expect(t, c, bindingtest.Claim("default", fmt.Sprintf("slow-%d", i), "1Gi", RequestingClass(new("dirs"))))
		}
		for i := range static {
			_, err := c.server.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("v-%d", i), "1Gi"))
			assert.NoError(t, err)
			s.expect(t, c, bindingtest.Claim("default", fmt.Sprintf("static-%d", i), "1Gi", RequestingClass(new(""))))
		}
	}
	c.client.Use(s.onServer)
	failsafe := time.AfterFunc(30*time.Second, func() { s.letGo("nobody else was bound in 30 s") })
	defer failsafe.Stop()

	c.run(t.Context(), 8)

	assert.Equal(t, "all others are bound", s.why)
	assert.Empty(t, s.overlaps, "no two calls for one storage at a time")
	for i := range stuck {
		assert.Equal(t, corev1.ClaimBound, c.server.Claim("default", fmt.Sprintf("stuck-%d", i)).Status.Phase, "bound after all")
	}
	assert.Empty(t, s.Problems())
}

// stuckStorage does not return for some claims until it is let go.
type stuckStorage struct {
	*bindingtest.Storage
	slots    int
	allStuck func()

	mu       sync.Mutex
	entered  int
	stuck    map[string]bool // volumes
	waiting  map[obj.Key]bool
	running  map[string]int
	overlaps []string
	released chan struct{}
	why      string
}

func newStuckStorage(slots int) *stuckStorage {
	s := &stuckStorage{
		Storage:  bindingtest.NewStorage(),
		slots:    slots,
		stuck:    map[string]bool{},
		waiting:  map[obj.Key]bool{},
		running:  map[string]int{},
		released: make(chan struct{}),
	}
	s.Use(s.onHook)
	return s
}

func (s *stuckStorage) stick(t *testing.T, c *driver, name string) {
	created, err := c.server.Create(t.Context(), bindingtest.Claim("default", name, "1Gi", RequestingClass(new("dirs"))))
	require.NoError(t, err)
	s.stuck["pvc-"+string(created.GetUID())] = true
}

func (s *stuckStorage) expect(t *testing.T, c *driver, claim *corev1.PersistentVolumeClaim) {
	_, err := c.server.Create(t.Context(), claim)
	assert.NoError(t, err)
	s.waiting[obj.KeyOf(claim)] = true
}

func (s *stuckStorage) onHook(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
	s.enter(call.Volume)
	defer s.leave(call.Volume)
	if s.stuck[call.Volume] {
		<-s.released
	} else {
		time.Sleep(hookTime / 4)
	}
	return do()
}

func (s *stuckStorage) enter(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[volume]++; s.running[volume] > 1 {
		s.overlaps = append(s.overlaps, volume)
	}
	if s.entered++; s.entered == s.slots {
		s.allStuck()
	}
}

func (s *stuckStorage) leave(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[volume]--
}

// onServer lets go when the last claim that was waited for is bound.
func (s *stuckStorage) onServer(call *bindingtest.Call, do func() error) error {
	err := do()
	claim, ok := call.Sent.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return err
	}
	s.mu.Lock()
	delete(s.waiting, call.Key)
	all := len(s.waiting) == 0
	s.mu.Unlock()
	if all {
		s.letGo("all others are bound")
	}
	return err
}

func (s *stuckStorage) letGo(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		s.why = why
		close(s.released)
	}
}
