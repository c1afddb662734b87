package testenv

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// isStopped returns nil when the process is stopped by a signal: sending one only asks for that.
func isStopped(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	// The state follows the name, which may itself hold blanks and brackets.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	if !bytes.HasPrefix(rest, []byte("T")) {
		return fmt.Errorf("process %d is in state %.1s", pid, rest)
	}
	return nil
}
