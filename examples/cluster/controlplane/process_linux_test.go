package controlplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPeakMemoryIsThatOfTheProcessAlone(t *testing.T) {
	ours := make([]byte, 64<<20)
	for i := range ours {
		ours[i]++
	}
	small := shell(t, `echo ready; while :; do sleep 0.01; done`)
	saying(t, small, "ready\n")
	assert.Positive(t, small.PeakMemory())
	assert.Less(t, small.PeakMemory(), int64(len(ours)))
	small.Kill()
	assert.Zero(t, small.PeakMemory(), "it has ended")
}

func TestProcessorTimeIsKnownWhileTheProcessRuns(t *testing.T) {
	busy := shell(t, `echo ready; while :; do :; done`)
	saying(t, busy, "ready\n")
	assert.Eventually(t, func() bool { return busy.CPU() >= 50*time.Millisecond }, time.Minute, time.Millisecond)
	before := busy.CPU()
	busy.Kill()
	assert.GreaterOrEqual(t, busy.CPU(), before, "all of it, once the process has ended")
}
