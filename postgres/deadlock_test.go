package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestBatchesDoNotDeadlock makes all calls on batches of the same few messages, in any order, some with
// UniqueFor and some replaced in flight. The server must find no deadlock: it ends one after a second,
// and the call that is repeated is so late. A claim gives up waiting sooner: see claim.sql.
func TestBatchesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	at := testenv.SharedPostgres(t).URL()
	admin := pool(t, at)
	name := freshName()
	exec(t, admin, "CREATE DATABASE "+name)
	u, err := url.Parse(at)
	must(t, err)
	u.Path = "/" + name
	const clients = 8
	p := pool(t, u.String(), func(c *pgxpool.Config) {
		c.MaxConns = clients + 2
	})
	b := postgres.New(p)
	q := opened(t, b)
	// In a table of a dozen rows the planner may join from the table's side, in the order of times.
	none(t, q.Schedule(t.Context(), pushes(5000, "far", time.Hour)))

	var wg sync.WaitGroup
	for seed := range uint64(clients) {
		wg.Go(func() {
			c := &crossing{ctx: t.Context(), q: q, rng: rand.New(rand.NewPCG(seed, 21))}
			for range 300 {
				c.round(t)
			}
		})
	}
	wg.Wait()
	must(t, q.Close())
	must(t, b.Close())
	p.Close()
	await(t, "the end of all connections, each of which reports its deadlocks then", func() bool {
		var n int
		must(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", name).Scan(&n))
		return n == 0
	})
	var deadlocks int
	must(t, admin.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = $1", name).Scan(&deadlocks))
	if deadlocks > 0 {
		t.Errorf("the server found %d deadlocks, want 0", deadlocks)
	}
}

// crossing is a client whose batches cross those of others.
type crossing struct {
	ctx    context.Context //nolint:containedctx // the goroutines of one test share it
	q      backend.Queue
	rng    *rand.Rand
	leases []backend.Lease
}

func (c *crossing) ids() []string {
	all := make([]string, 12)
	for i, k := range c.rng.Perm(len(all)) {
		all[i] = string(rune('a' + k))
	}
	return all[:2+c.rng.IntN(len(all)-2)]
}

func (c *crossing) pushes(replace bool) []backend.Message {
	var ms []backend.Message
	for _, id := range c.ids() {
		m := backend.Message{ID: id, Replace: replace, AfterInFlight: replace}
		if c.rng.IntN(2) == 0 {
			m.UniqueFor = time.Duration(1 + c.rng.IntN(int(100*time.Millisecond)))
		}
		ms = append(ms, m)
	}
	return ms
}

func (c *crossing) moves() []backend.Move {
	var ms []backend.Move
	for _, id := range c.ids() {
		ms = append(ms, backend.Move{ID: id})
	}
	return ms
}

// held returns the leases of this client in some order. Half of the times it forgets them.
func (c *crossing) held() []backend.Lease {
	ls := append([]backend.Lease(nil), c.leases...)
	c.rng.Shuffle(len(ls), func(i, k int) { ls[i], ls[k] = ls[k], ls[i] })
	if c.rng.IntN(2) == 0 {
		c.leases = nil
	}
	return ls
}

func (c *crossing) round(t *testing.T) {
	var errs []error
	switch c.rng.IntN(16) {
	case 0, 1:
		errs = c.q.Schedule(c.ctx, c.pushes(false))
	case 2, 3, 4:
		errs = c.q.Schedule(c.ctx, c.pushes(true))
	case 5:
		errs = c.q.Cancel(c.ctx, c.ids())
	case 6:
		errs = c.q.Reschedule(c.ctx, c.moves())
	case 7:
		errs = c.q.Redrive(c.ctx, c.ids())
	case 8:
		errs = c.q.DeleteDead(c.ctx, c.ids())
	default:
		c.receive(t)
		errs = c.settle()
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, backend.ErrDuplicate) && !errors.Is(err, backend.ErrInFlight) &&
			!errors.Is(err, backend.ErrNotFound) && !errors.Is(err, backend.ErrLeaseLost) {
			t.Error(err)
		}
	}
}

func (c *crossing) receive(t *testing.T) {
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Millisecond)
	defer cancel()
	ds, err := c.q.Receive(ctx, 8, 50*time.Millisecond)
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	for i := range ds {
		c.leases = append(c.leases, ds[i].Lease())
	}
}

func (c *crossing) settle() (errs []error) {
	ls := c.held()
	switch c.rng.IntN(4) {
	case 0:
		rs := make([]backend.Return, len(ls))
		for i := range ls {
			rs[i].Lease = ls[i]
		}
		return c.q.Nack(c.ctx, rs)
	case 1:
		rs := make([]backend.DeadLetterRequest, len(ls))
		for i := range ls {
			rs[i].Lease = ls[i]
		}
		return c.q.Dead(c.ctx, rs)
	case 2:
		_, errs = c.q.Extend(c.ctx, ls, 50*time.Millisecond)
		for i := range errs {
			if errors.Is(errs[i], backend.ErrUnavailable) {
				errs[i] = nil // another client's call has locked it
			}
		}
		return errs
	default:
		return c.q.Ack(c.ctx, ls)
	}
}

// TestClaimGivesUpALock holds a lock that claims need. A claim does not wait for it long, since a lock may be part of
// a deadlock: it is tried again, and Receive gets the message once the lock is free.
func TestClaimGivesUpALock(t *testing.T) {
	t.Parallel()
	server := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(server, postgres.Prefix(name)))
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "a"}}))
	tx, err := server.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	lock := `hashtextextended('"public".` + name + "q', 0)"
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock("+lock+")")
	must(t, err)

	type received struct {
		n   int
		err error
	}
	got := make(chan received, 1)
	go func() {
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		got <- received{len(ds), err}
	}()
	waited := map[string]bool{} // transactions
	await(t, "a second try of the claim", func() bool {
		var which string
		err := server.QueryRow(t.Context(), "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND (classid::bigint << 32 | objid::bigint) = "+lock).Scan(&which)
		if errors.Is(err, pgx.ErrNoRows) {
			return false
		}
		must(t, err)
		waited[which] = true
		return len(waited) > 1
	})
	must(t, tx.Rollback(t.Context()))
	if r := <-got; r.n != 1 || r.err != nil {
		t.Errorf("Receive returns %d messages and %v, want 1", r.n, r.err)
	}
	_, err = q.Purge(t.Context())
	must(t, err)
}
