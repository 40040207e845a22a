package controlplane

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
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

// cpuTime is not told of a process that has ended and was waited for. The system counts in hundredths of a second.
func cpuTime(pid int) (took time.Duration, told bool) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(status), ") ") // what comes before may have any form
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, false
	}
	var user, system int64
	_, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * 10 * time.Millisecond, err == nil
}
