package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestLimitsOfOurOwn has calls end by limits that are not their contexts': of a wait for the pool, of the
// driver's for a connection, and of a wait for a reply. Their errors match ErrUnavailable, and no
// context's.
func TestLimitsOfOurOwn(t *testing.T) {
	t.Parallel()
	server := testenv.SharedPostgres(t)
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	silent := testenv.Proxy(t, at.Host)
	silent.Blackhole(true)
	at.Host = silent.Addr()
	connect := func(url string) *pgxpool.Pool {
		p, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	one, plain, far := connect(server.URL()+"&pool_max_conns=1"), connect(server.URL()), connect(at.String()+"&connect_timeout=1")
	held, err := one.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Release)
	if err := plain.Ping(t.Context()); err != nil { // it has a connection, on a busy machine too
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		what    string
		bounded bool // by a context of the caller's
		pool    *pgxpool.Pool
		limit   time.Duration
		says    string
		unknown bool
	}{
		{"an exhausted pool", false, one, 200 * time.Millisecond, "no connection of the pool within 200ms", false},
		{"a server that does not greet", true, far, 200 * time.Millisecond, "timeout", false},
		{"a server that does not reply", false, plain, 2 * time.Second, "no reply within 2s", true},
	} {
		b := New(c.pool)
		b.within = c.limit
		ctx := context.Background()
		if c.bounded {
			ctx = within
		}
		_, err := call(ctx, b, "SELECT pg_sleep(60)::text", nil, func(*struct{}, scan) error { return nil })
		t.Logf("%s: %v", c.what, err)
		if !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, backend.ErrOutcomeUnknown) != c.unknown {
			t.Errorf("%s: %v matches others than ErrUnavailable, or not that; ErrOutcomeUnknown: want %v", c.what, err, c.unknown)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v does not say %q", c.what, err, c.says)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
