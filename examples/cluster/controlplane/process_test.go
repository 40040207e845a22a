package controlplane

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	process, err := launch(t.TempDir(), nil, "shell", "sh", "-c", script)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}

// saying waits until the process has printed that.
func saying(t *testing.T, process *Process, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return process.Output() == text }, time.Minute, time.Millisecond)
}

func TestStop(t *testing.T) {
	polite := shell(t, `trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.01; done`)
	saying(t, polite, "ready\n")
	if runtime.GOOS == "linux" {
		assert.Positive(t, polite.PeakMemory())
	}
	require.NoError(t, polite.Stop(time.Minute))
	assert.Contains(t, polite.Output(), "bye")

	failing := shell(t, `trap "exit 3" TERM; echo ready; while :; do sleep 0.01; done`)
	saying(t, failing, "ready\n")
	assert.ErrorContains(t, failing.Stop(time.Minute), "exit status 3")

	deaf := shell(t, `trap "" TERM; echo ready; while :; do sleep 0.01; done`)
	saying(t, deaf, "ready\n")
	assert.ErrorContains(t, deaf.Stop(10*time.Millisecond), "did not end within 10ms")
	<-deaf.Done()
}

func TestKillTakesTheChildrenToo(t *testing.T) {
	parent := shell(t, `(while :; do echo alive; sleep 0.01; done) & wait`)
	require.Eventually(t, func() bool { return parent.Output() != "" }, time.Minute, time.Millisecond)
	parent.Kill()
	assert.Error(t, parent.err)
	printed := parent.Output()
	assert.Never(t, func() bool { return parent.Output() != printed }, 100*time.Millisecond, 10*time.Millisecond)
	parent.Kill() // once more does no harm
}

func TestAwaitFailsWithWhatAProcessPrintedLast(t *testing.T) {
	process := shell(t, "echo no such flag; exit 1")
	err := await(process, http.DefaultClient, "http://127.0.0.1:1")
	require.ErrorIs(t, err, errEnded)
	assert.ErrorContains(t, err, "no such flag")
}

func TestTail(t *testing.T) {
	process := shell(t, "printf '1\\n2\\n3\\n'")
	<-process.Done()
	assert.Equal(t, "2\n3\n", process.Tail(2))
	assert.Equal(t, "1\n2\n3\n", process.Tail(9))
}
