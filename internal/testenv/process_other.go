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

func killProcess(int) error                  { return errors.ErrUnsupported }
func stopProcess(int) error                  { return errors.ErrUnsupported }
func continueProcess(int) error              { return errors.ErrUnsupported }
func isRunning(int) bool                     { return false }
func childrenOf(int) (pids []int, err error) { return nil, errors.ErrUnsupported }
