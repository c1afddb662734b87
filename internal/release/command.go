package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// command runs a program in a directory, and returns its standard output.
func command(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		err = errors.Join(fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err), errors.New(strings.TrimSpace(said.String())))
	}
	return string(out), err
}
