package main

import (
	"bufio"
	"fmt"
	"runtime"
	"strconv"
	"testing"
)

// A program that is killed takes its commands with it, so that none runs while the next worker's
// command does.
func TestKilledProgramLeavesNoCommand(t *testing.T) {
	t.Parallel()
	url := redisURL(t, "zsetpoll")
	q := openQueue(t, url)
	push(t, q, "a", "b", "c")
	cmd := process(t, "consume", url, "--exec", "--workers=3", "--", "sh", "-c", "echo $$; exec sleep 600")
	out, err := cmd.StdoutPipe()
	mustDo(t, err)
	mustDo(t, cmd.Start())
	var pids []int
	for said := bufio.NewScanner(out); len(pids) < 3 && said.Scan(); {
		pid, err := strconv.Atoi(said.Text())
		mustDo(t, err)
		pids = append(pids, pid)
	}
	mustDo(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if len(pids) != 3 {
		t.Fatalf("%d commands ran", len(pids))
	}
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
}

// Threads of the program may end while a command runs, except the thread that started the command.
func TestCommandsOutliveThreads(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	q := openQueue(t, url)
	const n = 200
	for i := range n {
		push(t, q, fmt.Sprint("m", i))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				endThread()
			}
		}
	}()
	r := delayqRun(t, "consume", url, "--exec", "--count="+fmt.Sprint(n), "--workers=16", "--max-attempts=1", "--", "sleep", "0.05")
	close(stop)
	<-stopped
	r.wantCode(t, exitOK)
	for l, err := range q.Dead().All(t.Context()) {
		t.Errorf("the command ended with %q, %v", l.Reason, err)
	}
}

// endThread ends the thread of a goroutine that keeps it.
func endThread() {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(done)
	}()
	<-done
}
