package binding_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/hookrun"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// clock is a fake one: the monotonic clock of a machine, and its wall clock, apart from each other.
type clock struct{ monotonic, wall time.Duration }

// at returns what time.Now returns then. Only package time makes times of which the two readings differ, so that the monotonic
// one is set in place: it is the second word.
func (c clock) at(t *testing.T, start time.Time) time.Time {
	now := start.Add(c.wall)
	layout := (*struct {
		_         uint64
		monotonic int64
		_         *time.Location
	})(unsafe.Pointer(&now))
	layout.monotonic += int64(c.monotonic - c.wall)
	require.Equal(t, c.monotonic, now.Sub(start), "the layout of time.Time is another by now")
	require.Equal(t, c.wall, now.Round(0).Sub(start.Round(0)))
	return now
}

// R8: the age of an announcement, and of live reads, is by the clock that counts more: a machine may have been suspended, or its
// wall clock set.
func TestR8ASuspensionCounts(t *testing.T) {
	for name, test := range map[string]struct {
		now clock
		age time.Duration
	}{
		"no time has passed":      {clock{0, 0}, 0},
		"both clocks go on":       {clock{20 * time.Second, 20 * time.Second}, 20 * time.Second},
		"suspended for minutes":   {clock{time.Second, 5 * time.Minute}, 5 * time.Minute},
		"set back by an hour":     {clock{40 * time.Second, -time.Hour}, 40 * time.Second},
		"set ahead: it gives up":  {clock{time.Second, time.Hour}, time.Hour},
		"set back while it slept": {clock{31 * time.Second, 29 * time.Second}, 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			now := func() time.Time { return test.now.at(t, start) }
			announcement := decision.Action{Kind: decision.UpdateVolume, Volume: &corev1.PersistentVolume{}, Token: 7}
			var announced, read hookrun.Evidence
			announced.Note(announcement, start)
			read.Note(decision.ReadLive(obj.VolumeKey("a"), "P2", ""), start)
			assert.Equal(t, test.age, announced.Age(decision.Action{Kind: decision.RunDeleter, Token: 7}, now)())
			assert.Equal(t, test.age, read.Age(decision.Action{Kind: decision.RunDeleter, Token: 8}, now)())
		})
	}
}

// R8: the context of a call ends soon after its machine goes on, where it was suspended for longer than the call may take.
func TestR8ACallEndsAfterASuspension(t *testing.T) {
	for name, suspended := range map[string]time.Duration{"for an hour": time.Hour, "until its time is just over": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endsAfter(t, suspended) })
		})
	}
}

func endsAfter(t *testing.T, suspended time.Duration) {
	start, age := time.Now(), atomic.Int64{}
	deletes := Deletes(func(ctx context.Context, _ hooks.ReclaimRequest) error {
		age.Store(int64(suspended)) // which ends here
		<-ctx.Done()
		return ctx.Err()
	})
	hookSet := hooks.Set{Timeout: time.Minute, SourceDeleters: map[string]hooks.Deleter{"hostPath": deletes}}
	action := decision.Action{Kind: decision.RunDeleter, Hook: "hostPath", Volume: FitVolume("a"), Token: 7}
	got := (&hookrun.Runner{}).Run(t.Context(), hookSet, action, func() time.Duration { return time.Duration(age.Load()) })
	require.ErrorIs(t, got.Err, context.DeadlineExceeded)
	assert.LessOrEqual(t, time.Since(start), time.Second)
}
