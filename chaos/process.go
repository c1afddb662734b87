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

// Role says which clients a worker process runs.
type Role struct {
	Clients  []string       `json:"clients"` // of clientsByName, or poison alone
	Proc     int            `json:"proc"`
	Endpoint Endpoint       `json:"endpoint"`
	Queue    string         `json:"queue"`
	Second   string         `json:"second,omitempty"` // the second queue, where one of the clients uses it
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

// clientsByName are the clients that a process may run. Each has the rate of the role, but for the
// pusher of the second queue.
var clientsByName = map[string]func(r Role, e, second *Env, proc int) Run{
	"worker":        func(_ Role, e, _ *Env, proc int) Run { return Worker(e, proc) },
	"pusher":        func(r Role, e, _ *Env, proc int) Run { return Pusher(e, proc, r.Rate) },
	"dead letters":  func(_ Role, e, _ *Env, proc int) Run { return DeadLetterClient(e, proc) },
	"misuse":        func(_ Role, e, _ *Env, proc int) Run { return MisuseClient(e, proc) },
	"pauser":        func(_ Role, e, _ *Env, proc int) Run { return Pauser(e, proc) },
	"second worker": func(_ Role, _, second *Env, proc int) Run { return SecondWorker(second, proc) },
	"second pusher": func(_ Role, _, second *Env, proc int) Run { return Pusher(second, proc, secondRate) },
	"poison":        func(_ Role, e, _ *Env, _ int) Run { return poisonWorker(e) },
}

// secondRate is the number of messages a second that are pushed to the second queue.
const secondRate = 15

// RunRole runs the role in the environment, if there is one, until the input ends. From the first
// line of input on, the process acks every message that it receives, and from the second line on
// those of the second queue too.
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
	env := func(queue string, mix Mix) *Env {
		return &Env{
			Backend: r.Endpoint.Backend, Queue: queue, Second: queue == r.Second, Seed: r.Seed, Traits: r.Traits, Rec: rec, Mix: mix,
			Numbers: NewNumbers(r.From, r.To), Shift: r.Shift,
		}
	}
	e, second := env(r.Queue, DefaultMix()), env(r.Second, SecondMix())
	second.Numbers = e.Numbers
	e.Mix.ReplaceHeld *= 10 // its workers get few messages that it has pushed itself
	e.WorkerContents = &workerContents{first: ownContents, end: maxContents, after: r.From, to: r.To}
	if r.Delay > 0 {
		e.Mix.Delay = r.Delay
	}
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			second.Draining.Store(e.Draining.Swap(true))
		}
		e.Stopping.Store(true)
		second.Stopping.Store(true)
		if r.Clients[0] == "poison" {
			cancel()
		}
	}()
	b, err := r.Endpoint.Open(ctx)
	if err != nil {
		return true, err
	}
	defer func() { _ = b.Close() }()
	share := func(context.Context) (backend.Backend, error) { return shared{b}, nil }
	var g Group
	defer g.Wait()
	for i, name := range r.Clients {
		if err := g.Add(ctx, share, clientsByName[name](r, e, second, r.Proc*clientsEach+i)); err != nil {
			return true, err
		}
	}
	return true, nil
}

// clientsEach bounds the clients of one process.
const clientsEach = 16

// shared ignores Close.
type shared struct{ backend.Backend }

func (shared) Close() error { return nil }

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
