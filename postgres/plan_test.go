package postgres_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// plans collects how the server executed the statements of a pool's connections, those within
// functions too.
type plans struct {
	mu    sync.Mutex
	texts []string
}

func (p *plans) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	texts := p.texts
	p.texts = nil
	return texts
}

// explain has connections report plans.
func (p *plans) explain(c *pgxpool.Config) {
	c.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.texts = append(p.texts, n.Message)
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
			SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off; SET auto_explain.log_level = notice`)
		return err
	}
}

var (
	messageScan = regexp.MustCompile(`(?:Scan|Update|Delete|Insert).*? on (?:\S+\.)?\S*messages\b.*`)
	actualRows  = regexp.MustCompile(`actual rows=(\d+)`)
	removedRows = regexp.MustCompile(`Rows Removed by \w+(?: \w+)*: (\d+)`)
)

// TestPlans has a session plan all its calls while there are no messages, fills the queue with 20,000
// that no statistics know of, and looks at how the session executes each call on 50 of them: over an
// index, and reading a few hundred rows at most.
func TestPlans(t *testing.T) {
	t.Parallel()
	const n, most = 20_000, 500
	var seen plans
	url, name := testenv.SharedPostgres(t).URL(), freshName()
	plain := pool(t, url)
	filler := opened(t, postgres.New(plain, postgres.Prefix(name)))
	exec(t, plain, "ALTER TABLE "+name+"messages SET (autovacuum_enabled = off)") // which would count them
	one := pool(t, url, seen.explain, func(c *pgxpool.Config) { c.MaxConns = 1 })
	q := opened(t, postgres.New(one, postgres.Prefix(name)))
	rare := func() {
		t.Helper()
		exec(t, one, "SELECT "+name+"sweep('q', NULL, 50)")
		exec(t, one, "SELECT "+name+"claim('q', NULL, 50, 3600000000, 1, -1, -1, true)")
	}
	everyCall(t, q, rare, "small", func(string) {})
	for name, delay := range map[string]time.Duration{"ready": 0, "later": time.Hour} {
		for part := range slices.Chunk(pushes(n/2, name, delay), 1000) {
			none(t, filler.Schedule(t.Context(), part))
		}
	}
	exec(t, plain, "INSERT INTO "+name+"messages (queue, id, state, at, seq, due, unique_until, body) SELECT 'q', 'taken-' || i, 3, 1::bigint << 60, i, 1, 1::bigint << 60, '' FROM generate_series(1, 20000) i")
	seen.take()
	everyCall(t, q, rare, "large", func(call string) {
		t.Helper()
		texts, scans := seen.take(), 0
		for _, text := range texts {
			lines := strings.Split(text, "\n")
			for i, line := range lines {
				if !messageScan.MatchString(line) {
					continue
				}
				scans++
				rows := number(actualRows, line)
				for _, below := range lines[i+1:] {
					if strings.Contains(below, "->") {
						break
					}
					rows += number(removedRows, below)
				}
				if strings.Contains(line, "Seq Scan") || rows > most {
					t.Errorf("%s reads %d rows:\n%s", call, rows, text)
				}
			}
		}
		if scans == 0 {
			t.Errorf("%s: no scan in %d plans", call, len(texts))
		}
	})
}

// everyCall makes each call on 50 messages, and rare ones. done is called after each.
func everyCall(t *testing.T, q backend.Queue, rare func(), name string, done func(call string)) {
	t.Helper()
	const some = 50
	ctx := t.Context()
	var ids []string
	var moves []backend.Move
	waiting := pushes(some, name, time.Hour)
	for _, m := range waiting {
		ids = append(ids, m.ID)
		moves = append(moves, backend.Move{ID: m.ID, Delay: 2 * time.Hour})
	}
	none(t, q.Schedule(ctx, waiting))
	done("Schedule")
	_, errs := q.Get(ctx, ids)
	none(t, errs)
	done("Get")
	none(t, q.Reschedule(ctx, moves))
	done("Reschedule")
	for i := range waiting {
		waiting[i].Replace = true
	}
	none(t, q.Schedule(ctx, waiting))
	done("Schedule with Replace")
	none(t, q.Cancel(ctx, ids))
	done("Cancel")
	receive := func(due string) (ls []backend.Lease) {
		t.Helper()
		none(t, q.Schedule(ctx, pushes(some, name+due, 0)))
		done("Schedule")
		ds, err := q.Receive(ctx, some, time.Hour)
		must(t, err)
		done("Receive")
		rare()
		done("a sweep and a repeated claim")
		for _, d := range ds {
			ls = append(ls, d.Lease())
		}
		return ls
	}
	none(t, q.Ack(ctx, receive("-first")))
	done("Ack")
	var back []backend.Return
	for _, l := range receive("-second") {
		back = append(back, backend.Return{Lease: l})
	}
	none(t, q.Nack(ctx, back))
	done("Nack")
	ds, err := q.Receive(ctx, some, time.Hour)
	must(t, err)
	var leases []backend.Lease
	var dead []backend.DeadLetterRequest
	for _, d := range ds {
		leases = append(leases, d.Lease())
		dead = append(dead, backend.DeadLetterRequest{Lease: d.Lease(), Reason: "r"})
	}
	done("Receive")
	_, errs = q.Extend(ctx, leases, time.Hour)
	none(t, errs)
	done("Extend")
	none(t, q.Dead(ctx, dead))
	done("Dead")
	_, _, err = q.Peek(ctx, "", some)
	must(t, err)
	done("Peek")
	letters, _, err := q.ListDead(ctx, "", some)
	must(t, err)
	done("ListDead")
	var again []string
	for _, l := range letters {
		again = append(again, l.ID)
	}
	none(t, q.Redrive(ctx, again[:some/2]))
	done("Redrive")
	none(t, q.DeleteDead(ctx, again[some/2:some-5]))
	done("DeleteDead")
	trimmed, _, err := q.TrimDead(ctx, backend.Retention{MaxCount: 1})
	must(t, err)
	if trimmed == 0 {
		t.Error("nothing was trimmed")
	}
	done("TrimDead")
	ds, err = q.Receive(ctx, some, time.Hour)
	must(t, err)
	leases = nil
	for _, d := range ds {
		leases = append(leases, d.Lease())
	}
	done("Receive")
	none(t, q.Ack(ctx, leases))
	done("Ack")
}

func number(of *regexp.Regexp, text string) int {
	m := of.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
