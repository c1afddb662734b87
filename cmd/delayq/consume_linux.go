package main

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithParent has the kernel kill a command when the thread that started it ends, as after kill
// -9 of the program.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// A pipe is an output that another program reads. A nil one is any other output.
type pipe struct{ fd int }

func pipeOf(out io.Writer) *pipe {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	return &pipe{int(f.Fd())}
}

// taken waits until the reader has taken all that was written. It returns an error when the reader
// has gone, or ctx ends, before that.
func (p *pipe) taken(ctx context.Context) error {
	if p == nil {
		return nil
	}
	const first, last = 10 * time.Microsecond, 10 * time.Millisecond
	for wait := first; ; wait = min(2*wait, last) {
		gone, ended := p.readerGone(), ctx.Err() // before the look: a reader may take the rest and go
		left, err := unix.IoctlGetInt(p.fd, unix.TIOCINQ)
		switch {
		case err != nil || left == 0:
			return nil //nolint:nilerr // a pipe that cannot be asked is not waited for
		case gone:
			return &outputError{syscall.EPIPE}
		case ended != nil:
			return ended
		}
		time.Sleep(wait)
	}
}

// watch reports a reader that goes while there is nothing to write.
func (p *pipe) watch(ctx context.Context, report func(error)) {
	if p == nil {
		return
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !p.readerGone() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
	report(&outputError{syscall.EPIPE})
}

func (p *pipe) readerGone() bool {
	fds := []unix.PollFd{{Fd: int32(p.fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
