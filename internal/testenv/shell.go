package testenv

import (
	"os/exec"
	"testing"
)

// Shell returns the path of a program that the documentation's commands are run with, as fish or
// jq.
func Shell(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Require(tb, &absentError{"shells", "install " + name})
	}
	return path
}
