package postgres

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/testenv"
)

// A lease that has ended while a transaction holds its message must not make a handle look again at
// once, and again.
func TestLookAgainForLockedMessage(t *testing.T) {
	t.Parallel()
	ended, soon := int64(1_000), 1_000_000+time.Second.Microseconds()
	c := claimed{now: 1_000_000, lease: &ended, next: &soon}
	if got, want := c.claim(1).Next, moment(c.now).Add(lockedAgain); !got.Equal(want) {
		t.Errorf("it looks again at %v, want %v", got, want)
	}
}

// TestRepeatedClaimLooksAtEverything has a message go back at a lost claim's repetition, with a due
// time before the place where scans start by then. The next claim finds it, and not the look at
// everything a second later.
func TestRepeatedClaimLooksAtEverything(t *testing.T) {
	t.Parallel()
	p, err := pgxpool.New(t.Context(), testenv.SharedPostgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	b := New(p, Prefix("repeated_looks_"))
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := q.(*handle.Queue).Messages.(*messages)
	push := func(ms ...backend.Message) {
		t.Helper()
		for _, err := range m.Schedule(t.Context(), ms) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	claim := func(limit int) []backend.Delivery {
		t.Helper()
		m.scan.mu.Lock()
		m.scan.whole = time.Now().Add(time.Hour) // none of these is the look at everything in its turn
		m.scan.mu.Unlock()
		c, err := m.claim(t.Context(), limit, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return c.Deliveries
	}
	push(backend.Message{ID: "old"}, backend.Message{ID: "new"})
	claim(0) // so that scans start at the present
	if _, err := p.Exec(t.Context(), "SELECT repeated_looks_claim('q', NULL, 10, 3600000000, 7, -1, -1, false)"); err != nil {
		t.Fatal(err)
	}
	push(backend.Message{ID: "old", Due: time.Now().Add(-time.Minute), Replace: true, AfterInFlight: true})
	m.scan.lower(time.Now()) // what a wake-up tells of is not what is tested
	m.scan.lost(7)
	if ds := claim(10); len(ds) != 1 || ds[0].ID != "new" {
		t.Fatalf("the repeated claim returned %v, want new", ds)
	}
	if ds := claim(10); len(ds) != 1 || ds[0].ID != "old" {
		t.Errorf("the claim after it returned %v, want old", ds)
	}
	if _, err := m.Purge(t.Context()); err != nil { // for the next run of the test
		t.Error(err)
	}
}

// TestWaitForAConnectionIsNoLook has a claim that looks at everything wait ten seconds for a connection of
// the pool. The next such look must not wait as for one that took ten seconds.
func TestWaitForAConnectionIsNoLook(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(testenv.SharedPostgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	b := New(p, Prefix("waiting_looks_"))
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := q.(*handle.Queue).Messages.(*messages)
	conn, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const held = 10 * time.Second // long enough for the claim to begin meanwhile on a busy machine
	var released time.Time
	time.AfterFunc(held, func() {
		released = time.Now()
		conn.Release()
	})
	began := time.Now()
	if _, err := m.claim(t.Context(), 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < held/2 {
		t.Fatalf("the claim took %v: it did not wait for the connection", waited)
	}
	if most := time.Since(released); m.scan.took > most {
		t.Errorf("the look took %v, with the wait for a connection: that was free for %v", m.scan.took, most)
	}
}

// TestNextWhole tells when the next look at everything comes: after twenty times the last one, but within
// ten seconds, unless two in a row were long.
func TestNextWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, took, want time.Duration }{
		{0, 0, wholeEvery},
		{0, 10 * time.Millisecond, wholeEvery},
		{0, 100 * time.Millisecond, 2 * time.Second},
		{0, 25 * time.Second, 10 * time.Second}, // a stall
		{10 * time.Millisecond, 25 * time.Second, 10 * time.Second},
		{25 * time.Second, 10 * time.Millisecond, wholeEvery},
		{time.Second, time.Second, 10 * time.Second},
		{5 * time.Second, 6 * time.Second, 20 * time.Second},
	} {
		s := scanner{due: 1, woken: 1}
		now := time.Now()
		for _, took := range []time.Duration{c.before, c.took} {
			s.whole = time.Time{}
			s.start(now, false)
			s.end(&claimed{now: 1, took: took}, all)
		}
		if due, _, _, _ := s.start(now.Add(c.want-1), false); due == all {
			t.Errorf("after looks of %v and %v: there is one before %v", c.before, c.took, c.want)
		}
		if due, _, _, _ := s.start(now.Add(c.want), false); due != all {
			t.Errorf("after looks of %v and %v: there is none after %v", c.before, c.took, c.want)
		}
	}
}

// TestPauseKeepsItsMessages has claims look at a paused queue, and the pause end by its time. The claim
// after it finds what was due before, and not the look at everything in its turn.
func TestPauseKeepsItsMessages(t *testing.T) {
	t.Parallel()
	p, err := pgxpool.New(t.Context(), testenv.SharedPostgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	b := New(p, Prefix("pause_keeps_"))
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.listener.close() // it would wake the queue once it listens
	m := q.(*handle.Queue).Messages.(*messages)
	claim := func() []backend.Delivery {
		t.Helper()
		m.scan.mu.Lock()
		m.scan.whole = time.Now().Add(time.Hour) // none of these is the look at everything in its turn
		m.scan.mu.Unlock()
		c, err := m.claim(t.Context(), 10, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return c.Deliveries
	}
	for looks, from := range []int64{0, all} {
		m.scan.lowerTo(from, from)
		if err := m.PauseAll(t.Context(), backend.Pause{For: time.Hour}); err != nil {
			t.Fatal(err)
		}
		for _, err := range m.Schedule(t.Context(), []backend.Message{{ID: "old", Due: time.Now().Add(-time.Minute)}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range looks + 2 {
			if ds := claim(); len(ds) > 0 {
				t.Fatalf("a paused queue hands out %v", ds)
			}
		}
		m.scan.mu.Lock()
		due := m.scan.due
		m.scan.mu.Unlock()
		if due == all {
			t.Error("each look at a paused queue is one at everything")
		}
		if _, err := p.Exec(t.Context(), "UPDATE pause_keeps_queues SET paused_until = 1"); err != nil { // it ends by its time
			t.Fatal(err)
		}
		if ds := claim(); len(ds) != 1 || ds[0].ID != "old" {
			t.Errorf("the claim after the pause returns %v, want old", ds)
		}
		if _, err := m.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepeatedClaimPassesByLocks has a transaction hold one of two messages of a claim whose reply was
// lost. Its repetition brings the other one. When none is left, the handle goes on to what is due, under
// a token of its own.
func TestRepeatedClaimPassesByLocks(t *testing.T) {
	t.Parallel()
	p, err := pgxpool.New(t.Context(), testenv.SharedPostgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	b := New(p, Prefix("repeated_locks_"))
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := q.(*handle.Queue).Messages.(*messages)
	push := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			for _, err := range m.Schedule(t.Context(), []backend.Message{{ID: id}}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const lost = 7
	// claim is what the handle gets after the loss: it claims again at once where there is more to be had.
	claim := func(want string) {
		t.Helper()
		m.scan.lost(lost)
		for {
			c, err := m.claim(t.Context(), 10, time.Hour)
			switch {
			case err != nil:
				t.Fatal(err)
			case len(c.Deliveries) == 0 && c.Next.Equal(c.Now):
				continue
			case len(c.Deliveries) != 1 || c.Deliveries[0].ID != want:
				t.Fatalf("got %v, want %s", c.Deliveries, want)
			case (c.Deliveries[0].Token.Lo == lost) != (want == "b"):
				t.Errorf("%s has the token %d", want, c.Deliveries[0].Token.Lo)
			}
			return
		}
	}
	push("a", "b")
	if _, err := p.Exec(t.Context(), "SELECT repeated_locks_claim('q', NULL, 10, 3600000000, $1::bigint, -1, -1, false)", int64(lost)); err != nil {
		t.Fatal(err)
	}
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM repeated_locks_messages WHERE id = 'a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	claim("b")
	if _, err := p.Exec(t.Context(), "DELETE FROM repeated_locks_messages WHERE id = 'b'"); err != nil { // it is settled
		t.Fatal(err)
	}
	push("c")
	claim("c")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}
