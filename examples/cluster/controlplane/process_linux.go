package controlplane

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ownGroup puts a process at the head of a group, and has it end with its parent.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// peakMemory is in bytes. What wait tells of a process that has ended would do only where its parent is small: it
// includes the time before exec.
func peakMemory(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10
}
