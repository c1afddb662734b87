//go:build !linux

package main

import (
	"context"
	"io"
	"syscall"
)

// endWithParent does nothing: only Linux ties a process to its parent.
func endWithParent(*syscall.SysProcAttr) {}

// A pipe is nil: only Linux tells what its reader has taken.
type pipe struct{}

func pipeOf(io.Writer) *pipe { return nil }

func (*pipe) taken(context.Context) error { return nil }

func (*pipe) watch(context.Context, func(error)) {}
