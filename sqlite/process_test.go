package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/sqlite"
)

// child is what another process does with the file. It writes a line for each thing done.
func child(part, path string) int {
	b := sqlite.New(path)
	q, err := openOn(b)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch part {
	case "push on request": // an id for each line that it reads
		say("ready")
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if err := push(q, lines.Text(), 0); err != nil {
				_, _ = fmt.Fprintln(os.Stderr, err)
				return 1
			}
			say(lines.Text())
		}
	case "transact": // until it is killed
		if err := transactEver(path, q); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "work": // until it is killed: push, and settle what is due
		go pushEver(q)
		settleEver(q)
	}
	if err := b.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var out sync.Mutex

func say(words ...any) {
	out.Lock()
	defer out.Unlock()
	_, _ = fmt.Fprintln(os.Stdout, words...)
}

func pushEver(q backend.Queue) {
	for i := 0; ; i++ {
		ms := make([]backend.Message, 7)
		for j := range ms {
			ms[j] = backend.Message{ID: fmt.Sprintf("%d-%d-%d", os.Getpid(), i, j), Body: make([]byte, 10_000*(i%3)), Delay: time.Duration(j) * time.Millisecond}
		}
		if err := errors.Join(q.Schedule(context.Background(), ms)...); err != nil {
			say("failed", err)
			os.Exit(1)
		}
		for _, m := range ms {
			say("pushed", m.ID)
		}
	}
}

// settleEver acknowledges every second delivery, and gives the others back.
func settleEver(q backend.Queue) {
	for i := 0; ; i++ {
		ds, err := q.Receive(context.Background(), 5, time.Hour)
		if err != nil {
			say("failed", err)
			os.Exit(1)
		}
		for j, d := range ds {
			if (i+j)%2 == 0 {
				say("acking", d.ID)
				err = errors.Join(q.Ack(context.Background(), []backend.Lease{d.Lease()})...)
				say("acked", d.ID)
			} else {
				err = errors.Join(q.Nack(context.Background(), []backend.Return{{Lease: d.Lease(), Delay: time.Millisecond}})...)
			}
			if err != nil {
				say("failed", err)
				os.Exit(1)
			}
		}
	}
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, part, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DELAYQ_SQLITE_CHILD="+part, "DELAYQ_SQLITE_FILE="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd, in, bufio.NewScanner(out)}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the child ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// A message that another process pushes wakes a worker that waits for one due in an hour.
func TestAnotherProcessWakes(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	mustPush(t, q, "far", time.Hour)
	p := start(t, "push on request", path)
	p.line(t)
	var slowest time.Duration
	for i := range 20 {
		id := "near " + strconv.Itoa(i)
		got := make(chan time.Time, 1)
		go func() {
			ds, err := q.Receive(t.Context(), 1, time.Hour)
			if err != nil || ds[0].ID != id {
				t.Errorf("received %v, %v; want %s", ds, err, id)
			}
			got <- time.Now()
		}()
		if _, err := fmt.Fprintln(p.in, id); err != nil {
			t.Fatal(err)
		}
		p.line(t)
		pushed := time.Now()
		select {
		case at := <-got:
			slowest = max(slowest, at.Sub(pushed))
		case <-time.After(patience):
			t.Fatalf("%s was not noticed in %v", id, patience)
		}
	}
	if slowest > 10*time.Second { // a handle sleeps for a minute where it has missed a wake-up
		t.Errorf("a message was noticed after %v", slowest)
	}
	t.Logf("the slowest of 20 was noticed %v after its push", slowest)
}

// TestKilledInMidWrite kills processes that push and settle, two at a time on one file. What they
// said was pushed or acknowledged must have happened, and each message must be whole.
func TestKilledInMidWrite(t *testing.T) {
	path := newFile(t)
	state := make(map[string]string) // the last that was said of each id
	for round := range 4 {
		ps := []*process{start(t, "work", path), start(t, "work", path)}
		for i, p := range ps {
			for range 200 * (1 + i + round) {
				note(t, state, p.line(t))
			}
			_ = p.cmd.Process.Kill()
			for p.out.Scan() { // what it said before it died
				note(t, state, p.out.Text())
			}
		}
	}
	q := open(t, path)
	ids := make([]string, 0, len(state))
	for id := range state {
		ids = append(ids, id)
	}
	infos, errs := q.Get(t.Context(), ids)
	pushes, acks := 0, 0
	for i, id := range ids {
		gone := errs != nil && errors.Is(errs[i], backend.ErrNotFound)
		switch {
		case !gone && errs != nil && errs[i] != nil:
			t.Fatal(errs[i])
		case state[id] == "pushed" && gone:
			t.Errorf("%s was pushed and is lost", id)
		case state[id] == "acked" && !gone:
			t.Errorf("%s was acknowledged and is %v", id, infos[i].State)
		case state[id] == "pushed":
			pushes++
		case state[id] == "acked":
			acks++
		}
	}
	if pushes == 0 || acks == 0 {
		t.Errorf("%d pushed and %d acknowledged: the test shows nothing", pushes, acks)
	}
	t.Logf("%d pushed and %d acknowledged messages", pushes, acks)
	mustBeWhole(t, path)
}

// note keeps the last word on an id. Lines that a kill has cut are dropped.
func note(t *testing.T, state map[string]string, line string) {
	t.Helper()
	word, id, _ := strings.Cut(line, " ")
	switch {
	case word == "failed":
		t.Fatal(line)
	case strings.Count(id, "-") != 2 || strings.HasSuffix(id, "-"):
	case word == "pushed" && state[id] != "":
	default:
		state[id] = word
	}
}

func mustBeWhole(t *testing.T, path string) {
	t.Helper()
	b := sqlite.New(path)
	defer func() { _ = b.Close() }()
	found, err := b.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Findings {
		if f.Severity > 0 {
			t.Errorf("%s: %s", f.About, f.Text)
		}
	}
}
