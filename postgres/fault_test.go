package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestServerKilled kills the server with -9 several times while messages are pushed, received and
// acked. What was pushed comes, and comes again only where an ack's outcome is unknown.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t)
	b := postgres.New(pool(t, server.URL()))
	q := opened(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	const messages = 4000
	var working sync.WaitGroup
	pushed := make(chan struct{})
	working.Go(func() {
		defer close(pushed)
		for i := 0; i < messages && ctx.Err() == nil; i += 20 {
			ms := pushes(20, fmt.Sprintf("m%05d", i), 0)
			for i := range ms { // one that is pushed again may have been acked meanwhile
				ms[i].UniqueFor = time.Hour
			}
			persistent(ctx, t, func() error {
				for _, err := range q.Schedule(ctx, ms) {
					if err != nil && !errors.Is(err, backend.ErrDuplicate) { // it was stored, and the reply lost
						return err
					}
				}
				return nil
			})
		}
	})
	acked := make(map[string]bool)
	maybe := make(map[string]bool) // acks of an unknown outcome
	var received atomic.Int64
	working.Go(func() {
		for len(acked)+len(maybe) < messages && ctx.Err() == nil {
			ds, err := q.Receive(ctx, 50, 10*time.Second)
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			received.Add(int64(len(ds)))
			ls := make([]backend.Lease, len(ds))
			for i, d := range ds {
				if acked[d.ID] {
					t.Errorf("%s was acked, and comes again", d.ID)
				}
				ls[i] = d.Lease()
			}
			errs := q.Ack(ctx, ls)
			for i, d := range ds {
				if errs == nil || errs[i] == nil {
					acked[d.ID] = true
					delete(maybe, d.ID)
				} else if errors.Is(errs[i], backend.ErrOutcomeUnknown) {
					maybe[d.ID] = true
				}
			}
		}
	})
	for kills := range int64(3) {
		await(t, "work in between", func() bool { return received.Load() > (kills+1)*messages/5 })
		server.Kill(t)
		server.Restart(t)
	}
	<-pushed
	working.Wait()
	if ctx.Err() != nil {
		t.Fatalf("%d acked and %d perhaps, of %d", len(acked), len(maybe), messages)
	}
	// Those whose acks were not carried out come again when their leases end.
	await(t, "an empty queue", func() bool {
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if ds, err := q.Receive(within, 100, 5*time.Second); err == nil {
			for _, d := range ds {
				if !maybe[d.ID] {
					t.Errorf("%s comes again", d.ID)
				}
				none(t, q.Ack(ctx, []backend.Lease{d.Lease()}))
			}
		}
		s, err := q.Stats(ctx)
		return err == nil && s.Scheduled+s.Ready+s.InFlight+s.Dead == 0
	})
}

// TestServerPaused stops the server's processes: each call ends with its context. Then it goes on.
func TestServerPaused(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t)
	b := postgres.New(pool(t, server.URL()))
	q := opened(t, b)
	none(t, q.Schedule(t.Context(), pushes(1, "before", time.Hour)))
	resume := server.Pause(t)
	defer resume()
	for what, call := range map[string]func(context.Context) error{
		"Schedule": func(ctx context.Context) error { return q.Schedule(ctx, pushes(3, "stopped", time.Hour))[0] },
		"Cancel":   func(ctx context.Context) error { return q.Cancel(ctx, []string{"x"})[0] },
		"Receive":  func(ctx context.Context) error { _, err := q.Receive(ctx, 1, time.Minute); return err },
		"Stats":    func(ctx context.Context) error { _, err := q.Stats(ctx); return err },
		"Purge":    func(ctx context.Context) error { _, err := q.Purge(ctx); return err },
		"Open": func(ctx context.Context) error {
			_, err := postgres.New(pool(t, server.URL())).Open(ctx, "other", quiet)
			return err
		},
	} {
		late := time.Hour
		for try := 0; try < 5 && late > time.Second; try++ { // a busy machine makes one late, and not each
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := call(ctx)
			deadline, _ := ctx.Deadline()
			late = time.Since(deadline)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s returned %v", what, err)
			}
			cancel()
		}
		if late > time.Second {
			t.Errorf("%s returned %v after its context", what, late)
		}
	}
	resume()
	none(t, q.Schedule(t.Context(), pushes(1, "after", 0)))
	ds, err := q.Receive(t.Context(), 1, time.Minute)
	must(t, err)
	if ds[0].ID != "after-000000" || ds[0].Attempt != 1 {
		t.Errorf("got %+v", ds[0])
	}
}

// TestCloseWhileAClaimStalls closes a backend on a pool of the caller's while the server's processes
// stand still: Close says that a claim goes on.
func TestCloseWhileAClaimStalls(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t)
	p := pool(t, server.URL())
	b := postgres.New(p)
	q := opened(t, b)
	resume := server.Pause(t)
	defer resume()
	received := make(chan error, 1)
	go func() {
		_, err := q.Receive(t.Context(), 1, time.Minute)
		received <- err
	}()
	await(t, "a claim on a connection", func() bool { return p.Stat().AcquiredConns() == 1 })
	if err := b.Close(); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Close returned %v", err)
	}
	if err := <-received; !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Receive returned %v", err)
	}
}

// TestReplyOfClaimLost cuts the connection between a claim's commit and its reply. The next claim
// brings the same messages, as attempt 1, under the lease that it asks for.
func TestReplyOfClaimLost(t *testing.T) {
	t.Parallel()
	server := testenv.SharedPostgres(t)
	at, err := url.Parse(server.URL())
	must(t, err)
	proxy := testenv.Proxy(t, at.Host)
	at.Host = proxy.Addr()
	prefix := fresh()
	near := opened(t, postgres.New(pool(t, server.URL()), prefix))
	unasked := func(c *pgxpool.Config) { // no other request goes before the claim
		c.MaxConns = 1
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}
	one := pool(t, at.String(), unasked)
	far := opened(t, postgres.New(one, prefix))
	none(t, near.Schedule(t.Context(), pushes(1, "first", 0))) // its claim is prepared
	ds, err := far.Receive(t.Context(), 1, time.Minute)
	must(t, err)
	none(t, far.Ack(t.Context(), []backend.Lease{ds[0].Lease()}))
	await(t, "the end of what it adds to the activity", func() bool {
		s, err := near.Stats(t.Context())
		must(t, err)
		return s.Activity.Acked == 1 && one.Stat().AcquiredConns() == 0
	})
	none(t, near.Schedule(t.Context(), pushes(3, "m", 0)))
	proxy.StallAfter(0)
	received := make(chan error, 1)
	go func() {
		_, err := far.Receive(t.Context(), 3, time.Minute)
		received <- err
	}()
	await(t, "the claim's commit", func() bool {
		s, err := near.Stats(t.Context())
		must(t, err)
		return s.InFlight == 3
	})
	proxy.CloseAll()
	proxy.Resume()
	if err := <-received; !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("the cut Receive returned: %v", err)
	}
	ds = nil
	await(t, "the same messages", func() bool {
		more, err := far.Receive(t.Context(), 3, time.Hour)
		ds = append(ds, more...)
		return err == nil
	})
	if len(ds) != 3 || ds[0].Attempt != 1 {
		t.Fatalf("got %+v, want all three at attempt 1", ds)
	}
	if left := time.Until(ds[0].Until); left < 50*time.Minute {
		t.Errorf("its lease of an hour ends in %v", left)
	}
	none(t, far.Ack(t.Context(), []backend.Lease{ds[0].Lease(), ds[1].Lease(), ds[2].Lease()}))
}
