//go:build !unix

package main

import "os/exec"

// inOwnGroup can do nothing for a command here: the package os/exec kills it when its time is over.
func inOwnGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
