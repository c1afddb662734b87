//go:build unix && !linux

package testenv

import "syscall"

// Only Linux can tie a process to its parent.
func dieWithParent(*syscall.SysProcAttr) {}

func isStopped(int) error { return nil }
