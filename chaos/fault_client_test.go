package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A workerProcess receives or pushes. A killed one is replaced by another with another number.
type workerProcess struct {
	role    Role
	numbers *Numbers
	most    uint32 // messages that one process may push
	dir     string
	program *testenv.Program
	files   []string
}

// procsEach bounds the successors of one process.
const procsEach = 100_000

func (w *workerProcess) start() (err error) {
	role := w.role
	role.Proc = w.role.Proc*procsEach + len(w.files) + 1
	role.File = filepath.Join(w.dir, fmt.Sprintf("%s-%d.jsonl", role.Clients[0], role.Proc))
	if slices.ContainsFunc(role.Clients, func(c string) bool { return strings.HasSuffix(c, "pusher") }) {
		role.From = w.numbers.Reserve(w.most)
		role.To = role.From + w.most
		if role.To > maxNumber {
			return errors.New("the run has used up the numbers of messages: it needs less time, or fewer kills")
		}
	}
	text, err := json.Marshal(role)
	if err != nil {
		return err
	}
	w.files = append(w.files, role.File)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), RoleVar+"="+string(text))
	w.program, err = testenv.StartProgram(cmd, filepath.Join(w.dir, "workers.log"))
	return err
}

// replace kills the process, and starts its successor.
func (w *workerProcess) replace() error {
	if err := w.program.Close(); err != nil {
		return err
	}
	return w.start()
}

func (w *workerProcess) drain() error {
	_, err := io.WriteString(w.program.Input(), "drain\n")
	return err
}

// stop asks the process to end, and waits until it has.
func (w *workerProcess) stop() {
	_ = w.program.Input().(io.Closer).Close() // a closed input has told the process already
	kill := time.AfterFunc(30*time.Second, func() { _ = w.program.Kill() })
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, w.program.Output())
	_ = w.program.Close() // its input is closed
}

func (w *workerProcess) calls() ([]judge.Call, error) {
	var all []judge.Call
	for _, file := range w.files {
		calls, err := judge.ReadCalls(file)
		if err != nil && !os.IsNotExist(err) { // a process that was killed early has no file
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}

// recorded returns the size of the process's history.
func (w *workerProcess) recorded() int64 {
	stat, err := os.Stat(w.files[len(w.files)-1])
	if err != nil {
		return 0
	}
	return stat.Size()
}

var elsewhere = judge.Window{Breaks: true, Elsewhere: true}

// processFaults are faults of worker processes. stopped is what a stopped one breaks.
func processFaults(ws []*workerProcess, stopped judge.Window) []*fault {
	if len(ws) == 0 {
		return nil
	}
	return []*fault{
		instant("worker kill -9", 3, elsewhere, func(i *injection) int {
			w := pick(i.rng, ws)
			// To kill a process before its first call would show nothing.
			worked := poll(2*time.Second, func() bool { return w.recorded() > 0 })
			must(i.T, w.replace())
			return count(worked)
		}),
		// A process that stops for longer than its leases settles them too late.
		lasting("worker SIGSTOP", 2, 1800*time.Millisecond, stopped, func(i *injection) func() int {
			w := pick(i.rng, ws)
			must(i.T, w.program.Pause())
			size := w.recorded()
			return func() int {
				still := w.recorded() == size
				must(i.T, w.program.Resume())
				return count(still)
			}
		}),
	}
}

// allKilled kills all processes at the same time, and starts their successors. What is done between
// returns its effect.
func allKilled(name string, weight int, ws []*workerProcess, between func(*injection) int) *fault {
	return instant(name, weight, breaks, func(i *injection) int {
		worked := poll(2*time.Second, func() bool {
			return !slices.ContainsFunc(ws, func(w *workerProcess) bool { return w.recorded() == 0 })
		})
		for _, w := range ws {
			must(i.T, w.program.Kill())
		}
		effect := between(i)
		for _, w := range ws {
			must(i.T, w.replace())
		}
		return effect * count(worked)
	}).alone()
}

// clientFaults are faults of the clients of this process.
func clientFaults(e *Env) []*fault {
	return append(harmlessFaults(e), switched("handles closed", 1, elsewhere, e.Reopening.Store, e.Reopened.Load))
}

// harmlessFaults break nothing: workers that come and go are held to every rule.
func harmlessFaults(e *Env) []*fault {
	return []*fault{
		switched("contexts end", 2, judge.Window{Elsewhere: true}, e.EndingContexts.Store, e.EndedContexts.Load),
		switched("workers pause and stop", 2, judge.Window{Elsewhere: true}, e.Pausing.Store, e.Paused.Load),
	}
}

func switched(name string, weight int, w judge.Window, set func(bool), read func() int64) *fault {
	return lasting(name, weight, 500*time.Millisecond, w, func(*injection) func() int {
		before := read()
		set(true)
		return func() int { set(false); return int(read() - before) }
	})
}
