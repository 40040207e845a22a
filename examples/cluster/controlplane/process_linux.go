package controlplane

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
)

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// PeakMemory is the most memory that the process has had so far, in bytes; 0 once it has ended. What the system
// tells of a process at its end would not do: it counts what its parent had when it was started.
func (p *Process) PeakMemory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	found := highWater.FindSubmatch(status)
	if err != nil || found == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10
}

// ownGroup puts a process at the head of a group, and has it end with its parent.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
