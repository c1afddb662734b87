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

// A Confirmation says where a message must be stored before a push returns. The zero value waits
// for nothing beyond the server's memory.
type Confirmation struct {
	Replicas int  // the number of replicas that must have the message
	Disk     bool // on their disks, and on the server's own
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

// CanConfirm asks the server whether it can confirm writes as the runner demands. It is no error if
// a replica is away at the moment.
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

// confirmed runs a command, and then waits for its writes on the same connection: the server counts
// by connection. A repeated command that finds its work done waits for it too.
func (r *Runner) confirmed(ctx context.Context, cmd Once) (any, error) {
	conn, err := r.connection(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.Process(ctx, cmd)
	reply, err := cmd.Result()
	if err != nil {
		r.moved(ctx, err)
		return nil, err
	}
	err = r.Confirm.await(ctx, conn)
	var refusal redis.Error
	if errors.As(err, &refusal) { // BUSY for another's script, or UNBLOCKED by a failover: the command was executed
		err = fmt.Errorf("%w: %w", backend.ErrUnconfirmed, err)
	}
	return reply, err
}

// moved has a Cluster's client look up the masters of the slots. It does so by itself only for what it sends itself.
func (r *Runner) moved(ctx context.Context, err error) {
	if c, ok := r.Client.(*redis.ClusterClient); ok && redis.HasErrorPrefix(err, "MOVED ") {
		c.ReloadState(ctx)
	}
}

// replyWithin is how much longer than the wait itself a server may take to reply.
const replyWithin = 3 * time.Second

// connection returns a connection to the server that has the keys.
func (r *Runner) connection(ctx context.Context) (*redis.Conn, error) {
	client, err := r.master(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the server: %w", err)
	}
	return client.WithTimeout(r.Confirm.Within + replyWithin).Conn(), nil
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

// await sends a command that the client library must not repeat: another connection has no writes
// to wait for.
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
