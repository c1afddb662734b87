package keyspace_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/keyspace"
)

func TestOpenReportsBadOptions(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is sent
	t.Cleanup(func() { must(t, client.Close()) })
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { must(t, ring.Close()) })
	for name, b := range map[string]*keyspace.Backend{
		"no client":        keyspace.New(nil),
		"a Ring":           keyspace.New(ring),
		"sweep too short":  keyspace.New(client, keyspace.Sweep(10*time.Millisecond-1)),
		"sweep too long":   keyspace.New(client, keyspace.Sweep(time.Minute+1)),
		"no prefix":        keyspace.New(client, keyspace.Prefix("")),
		"prefix of braces": keyspace.New(client, keyspace.Prefix("a{b}")),
		"nil option":       keyspace.New(client, nil),
		"bad before good":  keyspace.New(client, keyspace.Sweep(0), keyspace.Sweep(time.Second), keyspace.Prefix("p")),
	} {
		_, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: Open returns %v, want ErrInvalid", name, err)
		}
		if err := b.Degraded(); err != nil {
			t.Errorf("%s: degraded before anything was opened: %v", name, err)
		}
		must(t, b.Close())
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { must(t, client.Close()) })
	for _, tt := range []struct {
		opts  []keyspace.Option
		sweep time.Duration
	}{
		{nil, time.Second},
		{[]keyspace.Option{keyspace.Sweep(10 * time.Millisecond)}, 10 * time.Millisecond},
		{[]keyspace.Option{keyspace.Sweep(time.Minute)}, time.Minute},
	} {
		want := backend.Traits{Name: "keyspace", Resolution: time.Millisecond, Sweep: tt.sweep}
		if got := keyspace.New(client, tt.opts...).Traits(); got != want {
			t.Errorf("traits %+v, want %+v", got, want)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	b := newBackend(t, client)
	open(t, b, "q")
	for range 2 {
		must(t, b.Close())
	}
	if _, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Open after Close returns %v", err)
	}
	must(t, client.Ping(t.Context()).Err()) // the client is the caller's
}

// In virtual time nothing expires, so no subscription is needed.
func TestClockNeedsNoServerSetting(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	b := newBackend(t, client)
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler), Clock: clockwork.NewFakeClock()})
	must(t, err)
	push(t, q, "m", time.Hour)
	if f := flags(t, client); f != "" {
		t.Errorf("notify-keyspace-events was set to %q", f)
	}
	if n := triggers(t, client); n != 0 {
		t.Errorf("%d triggers", n)
	}
}
