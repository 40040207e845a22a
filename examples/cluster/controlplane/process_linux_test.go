package controlplane

import (
	"testing"

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
