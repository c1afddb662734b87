package store_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
)

// A reply is an error of the server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// Calls that are not repeated tell as others do whether their errors pass, and whether they may have changed
// something.
func TestErrorsOfOneTry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calls := map[string]func(ctx context.Context, s *store.Store) error{
		"Paused":      func(ctx context.Context, s *store.Store) error { _, _, err := s.Paused(ctx); return err },
		"Note":        func(ctx context.Context, s *store.Store) error { _, err := s.Note(ctx); return err },
		"Split":       func(ctx context.Context, s *store.Store) error { _, err := s.Split(ctx); return err },
		"Empty":       func(ctx context.Context, s *store.Store) error { _, err := s.Empty(ctx); return err },
		"AllowPushes": func(ctx context.Context, s *store.Store) error { return s.AllowPushes(ctx) },
	}
	for _, tt := range []struct {
		failure           error
		unavailable, lost bool
	}{
		{failure: io.EOF, unavailable: true, lost: true},
		{failure: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, unavailable: true, lost: true},
		{failure: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, unavailable: true},
		{failure: redis.ErrPoolTimeout, unavailable: true},
		{failure: reply("LOADING Redis is loading the dataset in memory"), unavailable: true},
		{failure: reply("CLUSTERDOWN The cluster is down"), unavailable: true},
		{failure: reply("READONLY You can't write against a read only replica."), unavailable: true},
		{failure: reply("NOPERM this user has no permissions")},
		{failure: redis.ErrClosed},
	} {
		client := redistest.Another(t, b.raw)
		client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, _ func() error) error {
			cmd.SetErr(tt.failure)
			return tt.failure
		}))
		for name, do := range calls {
			err := do(b.ctx, b.with(client))
			unknown := tt.lost && name == "AllowPushes"
			if !errors.Is(err, tt.failure) || errors.Is(err, backend.ErrUnavailable) != tt.unavailable || errors.Is(err, backend.ErrOutcomeUnknown) != unknown {
				t.Errorf("%s after %q returns %v", name, tt.failure, err)
			}
		}
	}
}
