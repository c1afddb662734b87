package chaos_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A worker is a process that takes or pushes. When it is killed another one takes its place, under another number.
type worker struct {
	role    chaos.Role
	numbers *chaos.Numbers
	dir     string
	program *testenv.Program
	files   []string
	lives   int
}

// numbersEach is how many messages a process may push in one life.
const numbersEach = 20_000

const procsEach = 1000

func (w *worker) start() error {
	role := w.role
	w.lives++
	role.Proc = w.role.Proc*procsEach + w.lives
	role.File = filepath.Join(w.dir, fmt.Sprintf("%d.jsonl", role.Proc))
	if role.Client == "pusher" {
		role.From = w.numbers.Reserve(numbersEach)
		role.To = role.From + numbersEach
	}
	w.files = append(w.files, role.File)
	program, err := startRole(role, w.dir)
	w.program = program
	return err
}

// startRole starts this test binary as a worker process.
func startRole(role chaos.Role, dir string) (*testenv.Program, error) {
	text, err := json.Marshal(role)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), chaos.RoleVar+"="+string(text))
	return testenv.StartProgram(cmd, filepath.Join(dir, "workers.log"))
}

// kill ends the process at once, and starts its successor.
func (w *worker) kill() error {
	if err := w.program.Kill(); err != nil {
		return err
	}
	if err := w.program.Close(); err != nil {
		return err
	}
	return w.start()
}

func (w *worker) drain() error {
	_, err := io.WriteString(w.program.Input(), "drain\n")
	return err
}

// leave asks the process to end, and waits until it has.
func (w *worker) leave() {
	_ = w.program.Input().(io.Closer).Close() // where it is closed, the process knows already
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, w.program.Output()); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = w.program.Kill()
		<-ended
	}
	_ = w.program.Close() // its input is closed
}

func (w *worker) calls() ([]judge.Call, error) {
	var all []judge.Call
	for _, file := range w.files {
		calls, err := judge.ReadCalls(file)
		if os.IsNotExist(err) { // it was killed before it began
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}

func (w *worker) recorded() int64 {
	stat, err := os.Stat(w.files[len(w.files)-1])
	if err != nil {
		return 0
	}
	return stat.Size()
}

func workerFaults(ws []*worker) []*fault {
	if len(ws) == 0 {
		return nil
	}
	return []*fault{workerKilled(ws), workerStopped(ws)}
}

// workerKilled waits until the process has done something: to kill one that only starts would show nothing.
func workerKilled(ws []*worker) *fault {
	worked := false
	return &fault{
		Kind: chaos.Kind{Name: "worker kill -9", Weight: 3}, window: judge.Window{Breaks: true, Elsewhere: true},
		on: func(t *testing.T, dice *rand.Rand) {
			w := ws[dice.IntN(len(ws))]
			worked = poll(2*time.Second, func() bool { return w.recorded() > 0 })
			must(t, w.kill())
		},
		off: func(*testing.T) int { return count(worked) },
	}
}

// workerStopped has a process stand still for longer than its leases, so that it settles them too late.
func workerStopped(ws []*worker) *fault {
	var w *worker
	var size int64
	return &fault{
		Kind: chaos.Kind{Name: "worker SIGSTOP", Weight: 2, For: 1800 * time.Millisecond}, window: judge.Window{Breaks: true, Elsewhere: true},
		on: func(t *testing.T, dice *rand.Rand) {
			w = ws[dice.IntN(len(ws))]
			must(t, w.program.Pause())
			size = w.recorded()
		},
		off: func(t *testing.T) int {
			still := w.recorded() == size
			must(t, w.program.Resume())
			return count(still)
		},
	}
}

// actorFaults are done by the actors of this process themselves.
func actorFaults(s *chaos.Env) []*fault {
	return append(restlessFaults(s), switched("handles closed", 1, judge.Window{Breaks: true, Elsewhere: true}, s.Reopening.Store, s.Reopened.Load))
}

// restlessFaults break nothing: workers that come and go do without being held to less than others.
func restlessFaults(s *chaos.Env) []*fault {
	return []*fault{
		switched("contexts end", 2, judge.Window{Elsewhere: true}, s.Hurry.Store, s.Broken.Load),
		switched("workers pause and stop", 2, judge.Window{Elsewhere: true}, s.Pausing.Store, s.Paused.Load),
	}
}

func switched(name string, weight int, w judge.Window, set func(bool), read func() int64) *fault {
	var before int64
	return &fault{
		Kind: chaos.Kind{Name: name, Weight: weight, For: 500 * time.Millisecond}, window: w,
		on:  func(*testing.T, *rand.Rand) { before = read(); set(true) },
		off: func(*testing.T) int { set(false); return int(read() - before) },
	}
}
