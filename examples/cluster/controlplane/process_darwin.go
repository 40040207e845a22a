package controlplane

import "syscall"

// rssUnit is what the peak memory of a process is counted in.
const rssUnit = 1

// ownGroup puts a process at the head of a group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
