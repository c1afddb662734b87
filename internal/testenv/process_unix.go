//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	sigKill = syscall.SIGKILL
	sigTerm = syscall.SIGTERM
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

func processAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	return attr
}

func signalGroup(pid int, s syscall.Signal) error {
	err := syscall.Kill(-pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func killProcess(pid int) error     { return signalOne(pid, sigKill) }
func stopProcess(pid int) error     { return signalOne(pid, sigStop) }
func continueProcess(pid int) error { return signalOne(pid, sigCont) }

func signalOne(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", s, pid, err)
	}
	return nil
}

// isRunning reports whether a process is there and has not ended.
func isRunning(pid int) bool {
	_, state, ok := parentOf(pid)
	return ok && state != "Z" && state != "X"
}

// childrenOf returns the processes that a process has started and that run.
func childrenOf(parent int) (pids []int, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) == 0 {
		return nil, errors.Join(err, errors.New("looking for processes: no /proc here"))
	}
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if p, _, ok := parentOf(pid); err == nil && ok && p == parent {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func parentOf(pid int) (parent int, state string, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may have spaces
	if len(fields) < 2 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[0], err == nil
}
