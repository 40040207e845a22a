package controlplane

import "syscall"

// rssUnit is what the peak memory of a process is counted in.
const rssUnit = 1024

// ownGroup puts a process at the head of a group, and has it end with its parent.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
