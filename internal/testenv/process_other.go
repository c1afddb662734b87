//go:build !unix

package testenv

import (
	"errors"
	"syscall"
)

const (
	sigKill = syscall.SIGKILL
	sigTerm = syscall.SIGTERM
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)

func processAttr() *syscall.SysProcAttr { return nil }

func signalGroup(int, syscall.Signal) error { return errors.ErrUnsupported }

func isStopped(int) error { return nil }
