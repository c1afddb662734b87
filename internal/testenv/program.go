package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Program is a process whose standard input and output the test uses. It ends with the test process.
// On Linux it does so even when that is killed; elsewhere it has to end with its input. Its methods
// may be called from any goroutine.
type Program struct {
	process *process
	in, out *os.File
}

// StartProgram starts a command, and appends its standard error to the file log.
func StartProgram(cmd *exec.Cmd, log string) (*Program, error) {
	pipes, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	defer func() { _, _ = pipes.theirIn.Close(), pipes.theirOut.Close() }() // the process has its own
	cmd.Stdin, cmd.Stdout = pipes.theirIn, pipes.theirOut
	p, err := startProcess(cmd, log)
	if err != nil {
		return nil, errors.Join(err, pipes.ourIn.Close(), pipes.ourOut.Close())
	}
	return &Program{process: p, in: pipes.ourIn, out: pipes.ourOut}, nil
}

// Input is the program's standard input.
func (p *Program) Input() io.Writer { return p.in }

// Output is the program's standard output. It ends when the program does.
func (p *Program) Output() io.Reader { return p.out }

// Pid is the program's process id.
func (p *Program) Pid() int { return p.process.pid }

// Kill ends the program at once (SIGKILL) and returns when it is gone. One that has ended is left
// alone.
func (p *Program) Kill() error { return p.process.kill() }

// Pause stops the program (SIGSTOP), and returns when it has stopped.
func (p *Program) Pause() error { return p.process.pause() }

// Resume lets a paused program go on (SIGCONT).
func (p *Program) Resume() error { return p.process.resume() }

// Log returns the end of the program's standard error.
func (p *Program) Log() string { return p.process.tail() }

// Close kills the program and frees its resources, except its log.
func (p *Program) Close() error {
	return errors.Join(p.process.kill(), p.in.Close(), p.out.Close())
}

// pipes connect a process to its parent. They are files, so that no goroutine copies and nothing is
// cut off when the process ends.
type pipes struct{ theirIn, ourIn, ourOut, theirOut *os.File }

func openPipes() (*pipes, error) {
	var p pipes
	var err error
	if p.theirIn, p.ourIn, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.ourOut, p.theirOut, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, p.theirIn.Close(), p.ourIn.Close())
	}
	return &p, nil
}
