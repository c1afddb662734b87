package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Role is what a worker process is told to play.
type Role struct {
	Play     string         `json:"play"` // taker, pusher or poison
	Proc     int            `json:"proc"`
	Endpoint Endpoint       `json:"endpoint"`
	Queue    string         `json:"queue"`
	Seed     uint64         `json:"seed"`
	Traits   backend.Traits `json:"traits"`
	File     string         `json:"file"` // where it records
	From     uint32         `json:"from"` // numbers for what it pushes: behind this one
	To       uint32         `json:"to"`   // and up to this one
	Rate     float64        `json:"rate"`
	Shift    time.Duration  `json:"shift"`
	Max      int            `json:"max"` // attempts, for poison
	Delay    time.Duration  `json:"delay"`
}

// RoleVar is the environment variable that makes a test binary a worker process: it has the Role.
const RoleVar = "DELAYQ_CHAOS_ROLE"

// PlayRole plays the role of the environment, if there is one, until the input ends or a line comes in that says drain, from when on
// the process settles all that it gets.
func PlayRole(in io.Reader) (played bool, err error) {
	text := os.Getenv(RoleVar)
	if text == "" {
		return false, nil
	}
	var r Role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return true, fmt.Errorf("reading %s: %w", RoleVar, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.Play == "poison" {
		go func() { _, _ = io.Copy(io.Discard, in); cancel() }()
		return true, r.swallow(ctx)
	}
	return true, r.act(ctx, in)
}

func (r Role) stage(rec Recorder) *Stage {
	s := &Stage{
		Backend: r.Endpoint.Backend, Queue: r.Queue, Seed: r.Seed, Traits: r.Traits, Rec: rec, Mix: DefaultMix(),
		Numbers: NewNumbers(r.From, r.To),
		Shift:   r.Shift,
	}
	if r.Delay > 0 {
		s.Mix.Delay = r.Delay
	}
	return s
}

func (r Role) act(ctx context.Context, in io.Reader) error {
	rec, err := OpenFile(r.File)
	if err != nil {
		return err
	}
	s := r.stage(rec)
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			s.Draining.Store(true)
		}
		s.Stopping.Store(true)
	}()
	play := Taker(s, r.Proc)
	if r.Play == "pusher" {
		play = Pusher(s, r.Proc, r.Rate)
	}
	t := Troupe{Stage: s}
	if err := t.Add(ctx, r.Endpoint.Open, play); err != nil {
		return err
	}
	t.Wait()
	return nil
}

// poisonRetry keeps what a handler gave back short of a drain's patience.
const poisonRetry = 50 * time.Millisecond

// swallow consumes a queue of poison: each message kills the process.
func (r Role) swallow(ctx context.Context) error {
	rec, err := OpenFile(r.File)
	if err != nil {
		return err
	}
	b, err := r.Endpoint.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	q, err := openPatiently(ctx, r.Queue, b)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	return q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		_, whole := recognize(d.Body, d.Headers, r.Traits.Supports(backend.Headers))
		rec.Begin(&Call{Op: Take, Start: now(), Err: d.ID, Items: []Item{{Attempt: d.Attempt, Bad: !whole}}})
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}, delayq.MaxAttempts(r.Max), delayq.Retry(delayq.Delays{poisonRetry}), delayq.Prefetch(0))
}

// openPatiently opens a queue although its store may be away for a while.
func openPatiently(ctx context.Context, name string, b backend.Backend) (delayq.Queue, error) {
	for {
		q, err := delayq.New(ctx, name, delayq.WithBackend(b), delayq.WithLease(poisonLease))
		if err == nil {
			return q, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(20 * breath):
		}
	}
}

const poisonLease = time.Second
