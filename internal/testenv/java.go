package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

const javaRemedy = "install a JDK and Maven (on Debian: apt-get install default-jdk-headless maven)"

// Java finds the program that runs Java. Its error is for Require.
func Java() (string, error) { return findJava("java") }

// Maven finds the program that builds Java programs; it needs a compiler, too. Its error is for
// Require.
func Maven() (string, error) {
	if _, err := findJava("javac"); err != nil {
		return "", err
	}
	return findJava("mvn")
}

func findJava(name string) (string, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, &absentError{"java", javaRemedy})
	}
	return path, nil
}

// Program is a process that talks over its standard input and output. It ends with the test
// process; on Linux even when that is killed, elsewhere if it heeds the end of its input. Its
// methods may be called from any goroutine.
type Program struct {
	process *process
	in      *os.File
	out     *os.File
}

// StartProgram starts a command, and appends its standard error to the file log.
func StartProgram(cmd *exec.Cmd, log string) (*Program, error) {
	pipes, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	defer pipes.closeTheirs()
	cmd.Stdin, cmd.Stdout = pipes.theirIn, pipes.theirOut
	p, err := startWithLog(cmd, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", cmd.Path, err), pipes.closeOurs())
	}
	return &Program{process: p, in: pipes.ourIn, out: pipes.ourOut}, nil
}

func startWithLog(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	cmd.Stderr, cmd.SysProcAttr = f, processAttr()
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	return p, <-started
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

func (p *pipes) closeTheirs() {
	_, _ = p.theirIn.Close(), p.theirOut.Close() // the process has its own
}

func (p *pipes) closeOurs() error { return errors.Join(p.ourIn.Close(), p.ourOut.Close()) }
