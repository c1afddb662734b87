package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// A Confirmation is what a call waits for beyond the server's memory. The zero value waits for nothing.
type Confirmation struct {
	Replicas int  // so many have to have what was written
	Disk     bool // on their disks, and the server on its own
	Within   time.Duration
}

func (c Confirmation) wanted() bool { return c.Replicas > 0 || c.Disk }

// Valid returns the error of a confirmation that no server can give.
func (c Confirmation) Valid(option string) error {
	if c.Replicas < 0 || c.Replicas > 100 || c.Replicas == 0 && !c.Disk {
		return backend.Invalid(option+" replicas", c.Replicas, "1 to 100; for WaitDisk also 0")
	}
	if c.Within < time.Millisecond || c.Within > time.Minute {
		return backend.Invalid(option+" within", c.Within, "1ms to 1m")
	}
	return nil
}

// CanConfirm asks the server whether it can tell what the runner waits for. That it cannot yet, since a replica is away, is no error.
func (r *Runner) CanConfirm(ctx context.Context) error {
	if !r.Confirm.wanted() {
		return nil
	}
	_, err := call.Do(ctx, r.Calls, func(ctx context.Context) (any, error) { return nil, r.tryConfirm(ctx) })
	var refusal redis.Error
	switch {
	case errors.Is(err, backend.ErrUnconfirmed):
		return nil
	case errors.As(err, &refusal):
		return fmt.Errorf("%w: %w", backend.Invalid("confirmation", r.Confirm.command(), "what the server can give: WAIT on a master; WAITAOF from Redis 7.2 on, with appendonly yes"), err)
	default:
		return err
	}
}

func (r *Runner) tryConfirm(ctx context.Context) error {
	conn, err := r.connection(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	soon := r.Confirm
	soon.Within = time.Millisecond
	return soon.await(ctx, conn)
}

// confirmed runs a command, and then waits on the same connection for what that has written: the server counts from what a
// connection has seen. A repeated command that finds its work done waits for that too.
func (r *Runner) confirmed(ctx context.Context, cmd Once) (any, error) {
	conn, err := r.connection(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.Process(ctx, cmd)
	reply, err := cmd.Result()
	if err != nil {
		return nil, err
	}
	return reply, r.Confirm.await(ctx, conn)
}

// answering is what a server may take longer than it is told to wait.
const answering = 3 * time.Second

// connection returns one to the server that has the keys.
func (r *Runner) connection(ctx context.Context) (*redis.Conn, error) {
	client, err := r.master(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the server: %w", err)
	}
	return client.WithTimeout(r.Confirm.Within + answering).Conn(), nil
}

func (r *Runner) master(ctx context.Context) (*redis.Client, error) {
	switch c := r.Client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, r.Keys[0])
	default:
		return nil, backend.Invalid("client", fmt.Sprintf("%T", c), "a *redis.Client or a *redis.ClusterClient where a push waits for replicas or disks")
	}
}

// await must not be repeated by itself: another connection would have nothing to wait for.
func (c Confirmation) await(ctx context.Context, conn *redis.Conn) error {
	cmd := NewOnce(ctx, append([]any{c.command()}, c.arguments()...)...)
	_ = conn.Process(ctx, cmd)
	reply, err := cmd.Result()
	if err != nil {
		return fmt.Errorf("%s: %w", c.command(), err)
	}
	return c.judge(reply)
}

func (c Confirmation) command() string {
	if c.Disk {
		return "WAITAOF"
	}
	return "WAIT"
}

func (c Confirmation) arguments() []any {
	args := []any{c.Replicas, c.Within.Milliseconds()}
	if c.Disk {
		return append([]any{1}, args...)
	}
	return args
}

func (c Confirmation) judge(reply any) error {
	if n, ok := reply.(int64); ok && !c.Disk {
		return c.missed(1, n)
	}
	if ns, ok := reply.([]any); ok && c.Disk && len(ns) == 2 {
		disk, _ := ns[0].(int64)
		replicas, _ := ns[1].(int64)
		return c.missed(disk, replicas)
	}
	return fmt.Errorf("%w: unexpected reply %.200q", backend.ErrUnconfirmed, fmt.Sprint(reply))
}

func (c Confirmation) missed(disk, replicas int64) error {
	switch {
	case disk < 1:
		return fmt.Errorf("%w: the server's disk did not within %v", backend.ErrUnconfirmed, c.Within)
	case replicas < int64(c.Replicas):
		return fmt.Errorf("%w: %d of %d replicas did within %v", backend.ErrUnconfirmed, replicas, c.Replicas, c.Within)
	default:
		return nil
	}
}
