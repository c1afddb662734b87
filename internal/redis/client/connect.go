package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
)

// Connect returns a client of the server that the URL names, once that has replied. The caller
// closes it.
func (t *Target) Connect(ctx context.Context) (redis.UniversalClient, error) {
	if err := t.reach(ctx); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.where(), t.discreet(err))
	}
	return newClient(t.clientOptions()), nil
}

func newClient(o *redis.UniversalOptions) redis.UniversalClient {
	o.Dialer = dialer(o)
	return redis.NewUniversalClient(o)
}

// clientOptions lets a caller's deadline end a wait for the server. A script whose reply is lost
// that way can be repeated without harm.
func (t *Target) clientOptions() *redis.UniversalOptions {
	o := t.Options
	o.ContextTimeoutEnabled = true
	return &o
}

// ping uses a client of its own that does not try again. A mistyped host should fail at once; only
// a running service retries for long.
func (t *Target) ping(ctx context.Context) error {
	o := t.clientOptions()
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize = 10 // after as many failures as that the client goes on dialling by itself
	hurry(ctx, o)
	client := newClient(o)
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // which ends a read
	defer stop()
	_, err := call.Do(ctx, nil, func(ctx context.Context) (any, error) {
		defer func() { _ = client.Close() }() // it waits for a Sentinel that is being asked
		return nil, client.Ping(ctx).Err()
	})
	if over := late(ctx); over != nil && err != nil {
		return over
	}
	return err
}

// defaultTimeout is the client library's default.
const defaultTimeout = 5 * time.Second

// hurry keeps the timeouts within the context's deadline, which TLS and Sentinel ignore.
func hurry(ctx context.Context, o *redis.UniversalOptions) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return
	}
	left := max(time.Until(deadline), time.Millisecond)
	for _, timeout := range []*time.Duration{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout} {
		if *timeout == 0 {
			*timeout = defaultTimeout
		}
		*timeout = min(*timeout, left)
	}
}

// late returns the context's error. A connection's deadline may fire just before the context's
// does.
func late(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Now().After(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func (t *Target) where() string {
	list := strings.Join(t.Options.Addrs, ", ")
	switch {
	case t.Options.MasterName != "":
		return fmt.Sprintf("master %q of Sentinel at %s", t.Options.MasterName, list)
	case t.Options.IsClusterMode:
		return "the Cluster at " + list
	default:
		return list
	}
}

// discreet removes passwords from a server's error: a server that does not know a command repeats
// its arguments. Other errors stay as they are, since a gap in a known text would show the
// password.
func (t *Target) discreet(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) || redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH") {
		return err
	}
	said, _, _ := strings.Cut(err.Error(), ", with args")
	for _, password := range []string{t.Options.Password, t.Options.SentinelPassword} {
		if password != "" {
			said = strings.ReplaceAll(said, password, hidden)
		}
	}
	return errors.New(said)
}
