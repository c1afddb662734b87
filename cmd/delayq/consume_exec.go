package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/delayq/delayq"
)

// The exit statuses that mean something, from sysexits.h. EX_TEMPFAIL, 75, is like all others.
const exDataErr = 65

// giveWay is how long a command that was told to end may take before it is killed.
const giveWay = 3 * time.Second

// execute runs the command for a message. A failed write of its output does not fail it: only its
// exit status does.
func (w *work) execute(ctx context.Context, d *delayq.Delivery) error {
	said := &tail{limit: 2 << 10}
	cmd := exec.CommandContext(ctx, w.Command[0], w.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(d.Body), tolerantWriter{w.std.out, w.fail}, io.MultiWriter(w.std.err, said)
	cmd.Env = append(os.Environ(), environment(d)...)
	cmd.WaitDelay = giveWay
	inOwnGroup(cmd)
	err := w.commands.run(cmd)
	if ctx.Err() != nil {
		killGroup(cmd) // whatever it left behind
	}
	// something in the background holds its output
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil
	}
	// Wait returns the context's error
	if errors.Is(context.Cause(ctx), delayq.ErrDrain) && cmd.ProcessState != nil && cmd.ProcessState.Success() {
		err = nil
	}
	return outcome(err, said.String())
}

// outcome is the meaning of an exit status.
func outcome(err error, said string) error {
	if err == nil {
		return nil
	}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exDataErr {
		return fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err)
	}
	return err
}

// longestVariable is the smallest limit of common systems: 128 KiB with the variable's name.
const longestVariable = 100 << 10

// environment describes a command's message. Values that no environment can hold are left out.
func environment(d *delayq.Delivery) []string {
	headers, err := json.Marshal(contentJSON("", nil, d.Headers, time.Time{}).Headers)
	if d.Headers == nil {
		headers = []byte("{}")
	}
	vars := []string{
		"DELAYQ_ID=" + d.ID,
		"DELAYQ_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"DELAYQ_DUE=" + d.Due.UTC().Format(time.RFC3339Nano),
	}
	if err == nil && len(headers) <= longestVariable {
		vars = append(vars, "DELAYQ_HEADERS="+string(headers))
	}
	// of two values for one variable, the command gets the last
	for _, k := range slices.Sorted(maps.Keys(d.Headers)) {
		v := d.Headers[k]
		if len(v) <= longestVariable && !strings.Contains(v, "\x00") {
			vars = append(vars, "DELAYQ_HEADER_"+variable(k)+"="+v)
		}
	}
	return vars
}

// variable makes a header's name one of an environment.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// A tail keeps the last bytes written to it. It is not safe for concurrent use.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "�") }

// commands are those that run.
type commands struct {
	mu      sync.Mutex
	running map[*exec.Cmd]struct{}
}

func (c *commands) run(cmd *exec.Cmd) error {
	// The kernel takes the end of the thread that started a command for the end of the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.start(cmd); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	err := cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, cmd)
	return err
}

func (c *commands) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	set(&c.running, cmd, struct{}{})
	return nil
}

// endOnSecondSignal ends commands and program at a second signal: commands are in groups of their
// own, so that the first one, which a terminal sends to all of a group, leaves them alone.
func (c *commands) endOnSecondSignal() (release func()) {
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		c.mu.Lock() // and keep it, so that nothing starts any more
		for cmd := range c.running {
			killGroup(cmd)
		}
		os.Exit(exitInterrupted)
	}()
	return func() { signal.Stop(signals); close(done) }
}
