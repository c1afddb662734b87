package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a program that was started here. It leads a process group, so that signals also reach
// its children.
type process struct {
	cmd  *exec.Cmd
	pid  int
	log  string
	from int64         // where its own part of the log begins
	done chan struct{} // closed when it has ended
}

// startProcess appends the command's output to a log file: its standard output only where that is
// not set.
func startProcess(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	cmd.Stderr, cmd.SysProcAttr = f, processAttr()
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	p := &process{cmd: cmd, log: log, from: info.Size(), done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel takes the end of the thread that forked for the end of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log has the reason of its end
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s syscall.Signal) error {
	if p.ended() {
		return fmt.Errorf("sending %v to process %d: %w", s, p.pid, os.ErrProcessDone)
	}
	if err := signalGroup(p.pid, s); err != nil {
		return fmt.Errorf("sending %v to process %d: %w", s, p.pid, err)
	}
	return nil
}

// kill ends the process at once. It ignores a process that has ended.
func (p *process) kill() error {
	if err := p.signal(sigKill); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// stop asks the process to end, and kills it when it does not.
func (p *process) stop() error {
	for _, s := range []syscall.Signal{sigTerm, sigCont} {
		if err := p.signal(s); err != nil {
			return p.kill()
		}
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return p.kill()
	}
}

// pause returns when the process has stopped.
func (p *process) pause() error {
	if err := p.signal(sigStop); err != nil {
		return err
	}
	return await("the process to stop", func() (bool, error) {
		if p.ended() {
			return true, os.ErrProcessDone
		}
		return false, isStopped(p.pid)
	})
}

func (p *process) resume() error { return p.signal(sigCont) }

// tail returns the end of the process's output.
func (p *process) tail() string {
	const most = 2000
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(p.from, info.Size()-most), most))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
