//go:build unix && !linux

package main

import "syscall"

// endWithParent does nothing: only Linux ties a process to its parent.
func endWithParent(*syscall.SysProcAttr) {}
