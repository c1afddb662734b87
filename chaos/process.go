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
	Delay    time.Duration  `json:"delay"`
}

// RoleVar is the environment variable that makes a test binary a worker process. It holds the Role.
const RoleVar = "DELAYQ_CHAOS_ROLE"

// RunRole runs the role in the environment, if there is one, until the input ends. From the first
// line of input on, the process acks every message that it receives.
func RunRole(in io.Reader) (ran bool, err error) {
	text := os.Getenv(RoleVar)
	if text == "" {
		return false, nil
	}
	var r Role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return true, fmt.Errorf("reading %s: %w", RoleVar, err)
	}
	rec, err := judge.OpenFile(r.File)
	if err != nil {
		return true, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &Env{
		Backend: r.Endpoint.Backend, Queue: r.Queue, Seed: r.Seed, Traits: r.Traits, Rec: rec, Mix: DefaultMix(),
		Numbers: NewNumbers(r.From, r.To), Shift: r.Shift,
	}
	if r.Delay > 0 {
		e.Mix.Delay = r.Delay
	}
	run := Worker(e, r.Proc)
	switch r.Client {
	case "pusher":
		run = Pusher(e, r.Proc, r.Rate)
	case "poison":
		run = poisonWorker(e)
	}
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			e.Draining.Store(true)
		}
		e.Stopping.Store(true)
		if r.Client == "poison" {
			cancel()
		}
	}()
	var g Group
	defer g.Wait()
	return true, g.Add(ctx, r.Endpoint.Open, run)
}

const (
	poisonAttempts = 3                     // after these, a poison message is a dead letter
	poisonLease    = time.Second           // of the message that killed the worker before
	poisonRetry    = 50 * time.Millisecond // far less than a drain may take
)

// poisonWorker handles messages by killing its process.
func poisonWorker(e *Env) Run {
	return func(ctx context.Context, b backend.Backend) {
		c := newClient(e, 0, b)
		for ctx.Err() == nil {
			q, err := delayq.New(ctx, e.Queue, delayq.WithBackend(b), delayq.WithLease(poisonLease))
			if err != nil { // its store may be down
				c.rest(ctx, 20*shortPause)
				continue
			}
			err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
				_, _, whole := recognize(d.Body, d.Headers, e.Traits)
				e.Rec.Begin(&judge.Call{
					Op: judge.Receive, Start: time.Now().UnixNano(), Err: d.ID, Items: []judge.Item{{Attempt: d.Attempt, Altered: !whole}},
				})
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}, delayq.MaxAttempts(poisonAttempts), delayq.Retry(delayq.Delays{poisonRetry}), delayq.Prefetch(0))
			if err = errors.Join(err, q.Close()); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
		}
	}
}
