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
	"github.com/delayq/delayq/internal/judge"
)

// Role says which client a worker process runs.
type Role struct {
	Client   string         `json:"client"` // worker, pusher or poison
	Proc     int            `json:"proc"`
	Endpoint Endpoint       `json:"endpoint"`
	Queue    string         `json:"queue"`
	Seed     uint64         `json:"seed"`
	Traits   backend.Traits `json:"traits"`
	File     string         `json:"file"` // to record in
	From     uint32         `json:"from"` // it pushes messages with numbers after this one
	To       uint32         `json:"to"`   // and up to this one
	Rate     float64        `json:"rate"`
	Shift    time.Duration  `json:"shift"`
	Max      int            `json:"max"` // attempts, for poison
	Delay    time.Duration  `json:"delay"`
}

// RoleVar is the environment variable that makes a test binary a worker process. It holds the Role.
const RoleVar = "DELAYQ_CHAOS_ROLE"

// RunRole runs the role in the environment, if there is one, until the input ends. From the first line
// of input on, the process acknowledges every message that it receives.
func RunRole(in io.Reader) (ran bool, err error) {
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
	if r.Client == "poison" {
		go func() { _, _ = io.Copy(io.Discard, in); cancel() }()
		return true, r.consumePoison(ctx)
	}
	return true, r.run(ctx, in)
}

func (r Role) env(rec judge.Recorder) *Env {
	e := &Env{
		Backend: r.Endpoint.Backend, Queue: r.Queue, Seed: r.Seed, Traits: r.Traits, Rec: rec, Mix: DefaultMix(),
		Numbers: NewNumbers(r.From, r.To),
		Shift:   r.Shift,
	}
	if r.Delay > 0 {
		e.Mix.Delay = r.Delay
	}
	return e
}

func (r Role) run(ctx context.Context, in io.Reader) error {
	rec, err := judge.OpenFile(r.File)
	if err != nil {
		return err
	}
	e := r.env(rec)
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			e.Draining.Store(true)
		}
		e.Stopping.Store(true)
	}()
	run := Worker(e, r.Proc)
	if r.Client == "pusher" {
		run = Pusher(e, r.Proc, r.Rate)
	}
	var g Group
	if err := g.Add(ctx, r.Endpoint.Open, run); err != nil {
		return err
	}
	g.Wait()
	return nil
}

// poisonRetry is short beside the patience of a drain.
const poisonRetry = 50 * time.Millisecond

// consumePoison consumes a queue whose messages kill the process.
func (r Role) consumePoison(ctx context.Context) error {
	rec, err := judge.OpenFile(r.File)
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
		rec.Begin(&judge.Call{Op: judge.Receive, Start: now(), Err: d.ID, Items: []judge.Item{{Attempt: d.Attempt, Altered: !whole}}})
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}, delayq.MaxAttempts(r.Max), delayq.Retry(delayq.Delays{poisonRetry}), delayq.Prefetch(0))
}

// openPatiently opens a queue, and retries while its store is away.
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
