package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

func exec(t *testing.T, p *pgxpool.Pool, statements string) {
	t.Helper()
	_, err := p.Exec(t.Context(), statements)
	must(t, err)
}

// says fails unless an error says each of some texts.
func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want one that says %q", err, text)
		}
	}
}

func TestBadServers(t *testing.T) {
	t.Parallel()
	server := testenv.SharedPostgres(t)
	admins := pool(t, server.URL())
	open := func(p *pgxpool.Pool, opts ...postgres.Option) error {
		b := postgres.New(p, opts...)
		defer func() { _ = b.Close() }()
		_, err := b.Open(t.Context(), "q", quiet)
		return err
	}

	t.Run("a newer schema", func(t *testing.T) {
		t.Parallel()
		must(t, open(admins, postgres.Prefix("newer_")))
		exec(t, admins, "UPDATE newer_schema SET version = 99")
		says(t, open(admins, postgres.Prefix("newer_")), "version 99", "newer release")
	})
	t.Run("no tables", func(t *testing.T) {
		t.Parallel()
		says(t, open(admins, postgres.Prefix("absent_"), postgres.NoMigration()), "absent_", "postgres.SQL")
		var made bool
		must(t, admins.QueryRow(t.Context(), "SELECT to_regclass('absent_messages') IS NOT NULL").Scan(&made))
		if made {
			t.Error("it made tables")
		}
	})
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		p := pool(t, server.URL()+"&options=-cdefault_transaction_read_only%3Don")
		err := open(p, postgres.Prefix("readonly_"))
		says(t, err, "read-only", "target_session_attrs")
		if !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%v does not match ErrUnavailable", err)
		}
	})
	t.Run("no rights", func(t *testing.T) {
		t.Parallel()
		exec(t, admins, "CREATE ROLE weak LOGIN; CREATE SCHEMA guarded")
		p := pool(t, strings.Replace(server.URL(), "postgres@", "weak@", 1))
		says(t, open(p, postgres.Schema("guarded")), "permission denied", "grant", "CREATE on the schema")
		must(t, open(admins, postgres.Schema("guarded"))) // by another user
		exec(t, admins, "GRANT USAGE ON SCHEMA guarded TO weak; GRANT SELECT ON guarded.delayq_schema TO weak")
		b := postgres.New(p, postgres.Schema("guarded"), postgres.NoMigration())
		defer func() { _ = b.Close() }()
		q, err := b.Open(t.Context(), "q", quiet)
		must(t, err)
		says(t, q.Schedule(t.Context(), pushes(1, "m", 0))[0], "permission denied", "grant")
	})
	t.Run("another encoding", func(t *testing.T) {
		t.Parallel()
		exec(t, admins, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
		says(t, open(pool(t, strings.Replace(server.URL(), "/postgres?", "/latin?", 1))), "LATIN1", "UTF8")
	})
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		err := open(pool(t, "postgres://postgres@127.0.0.1:1/postgres"))
		if !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSQL runs the printed statements twice, and opens a queue on the tables.
func TestSQL(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	opts := []postgres.Option{postgres.Schema("Printed"), postgres.Prefix("p_")}
	statements, err := postgres.SQL(opts...)
	must(t, err)
	exec(t, p, statements)
	exec(t, p, statements)
	q := opened(t, postgres.New(p, append(opts, postgres.NoMigration())...))
	none(t, q.Schedule(t.Context(), pushes(2, "m", 0)))
	var n int
	must(t, p.QueryRow(t.Context(), `SELECT count(*) FROM "Printed".p_messages`).Scan(&n))
	if n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if _, err := postgres.SQL(postgres.Prefix("Bad-")); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a bad prefix: %v", err)
	}
}

// TestManyOpenAtOnce has the tables made by many backends at the same time, in a schema that is there
// and in some that are not.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	const backends = 8
	pools := make([]*pgxpool.Pool, backends)
	for i := range pools {
		pools[i] = pool(t, testenv.SharedPostgres(t).URL())
	}
	where := []postgres.Option{fresh()}
	for range 5 {
		where = append(where, postgres.Schema(freshName()))
	}
	for _, there := range where {
		errs := make(chan error)
		for _, p := range pools {
			go func() {
				b := postgres.New(p, there)
				_, err := b.Open(t.Context(), "q", quiet)
				errs <- errors.Join(err, b.Close())
			}()
		}
		for range backends {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOptionsOutOfRange(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	for what, b := range map[string]*postgres.Backend{
		"Schema":  postgres.New(p, postgres.Schema(`a"b`)),
		"Prefix":  postgres.New(p, postgres.Prefix("")),
		"Poll":    postgres.New(p, postgres.Poll(time.Hour)),
		"option":  postgres.New(p, nil),
		"pool":    postgres.New(nil),
		"db nil":  postgres.NewDB(nil),
		"Poll 0s": postgres.New(p, postgres.Poll(0)),
	} {
		if _, err := b.Open(t.Context(), "q", quiet); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	server := testenv.SharedPostgres(t)
	for what, at := range map[string]string{
		"a parameter": server.URL() + "&queue=a%2fb&prefix=url_&poll=100ms",
		"the path":    strings.Replace(strings.Replace(server.URL(), "postgres://", "pg://", 1), "/postgres?", "/postgres/a%2fb?prefix=url_&", 1),
	} {
		b, queue, err := backend.DefaultMux().Open(t.Context(), at)
		must(t, err)
		if queue != "a/b" {
			t.Errorf("%s: the queue is %q", what, queue)
		}
		must(t, b.Close())
	}
	q, err := delayq.Open(t.Context(), server.URL(), delayq.Named("orders"))
	must(t, err)
	must(t, q.Close())
	for _, bad := range []string{
		"postgres://user:secret@localhost/db/too/far?queue=q", "postgres://user:secret@localhost/db", "pg://user:secret@localhost/q",
		server.URL() + "&queue=q&secret=1", server.URL() + "&queue=q&poll=secret", server.URL() + "&queue=q&prefix=Se-cret",
		"postgres://user:secret@localhost:port/db?queue=q", "postgres://user:sec/ret@localhost/db?queue=q", server.URL() + "&queue=q&schema=public&schema=other",
	} {
		_, err := delayq.Open(t.Context(), bad)
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		} else if strings.Contains(err.Error(), ":sec") {
			t.Errorf("%s: the error shows the user: %v", bad, err)
		}
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t, "autovacuum=off", "synchronous_commit=off", "default_transaction_isolation=repeatable read")
	p := pool(t, server.URL())
	b := postgres.New(p, postgres.Prefix("ex_"))
	defer func() { _ = b.Close() }()
	e, err := b.Examine(t.Context())
	must(t, err)
	found := make(map[string]admin.Severity)
	for _, f := range e.Findings {
		found[f.About] = f.Severity
		if (f.Severity > admin.Note) != (f.Remedy != "") {
			t.Errorf("%+v", f)
		}
	}
	for about, want := range map[string]admin.Severity{"autovacuum": admin.Problem, "durability": admin.Warning, "isolation": admin.Warning, "snapshots": admin.Fine, "version": admin.Fine} {
		if got, ok := found[about]; got != want || !ok {
			t.Errorf("%s is %v, want %v", about, got, want)
		}
	}
}

// TestWakesOtherProcesses has a worker of another backend sleep, and a nearer message pushed.
func TestWakesOtherProcesses(t *testing.T) {
	t.Parallel()
	name := freshName()
	prefix := postgres.Prefix(name)
	url := testenv.SharedPostgres(t).URL()
	watch := pool(t, url)
	slow := postgres.Poll(10 * time.Second) // only a wake-up is soon enough
	pusher := opened(t, postgres.New(pool(t, url), prefix, slow))
	worker := opened(t, postgres.New(pool(t, url), prefix, slow))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 5 {
		var before time.Time
		must(t, watch.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&before))
		got := make(chan time.Time, 1)
		go func() {
			if _, err := worker.Receive(ctx, 1, time.Minute); err == nil {
				got <- time.Now()
			}
		}()
		if i == 0 { // until it listens
			await(t, "LISTEN", func() bool {
				var n int
				must(t, watch.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").Scan(&n))
				return n > 0
			})
		}
		await(t, "a claim that finds nothing", func() bool {
			var n int
			must(t, watch.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND state = 'idle' AND query_start > $2",
				"%"+name+"claim%", before).Scan(&n))
			return n > 0
		})
		none(t, pusher.Schedule(ctx, pushes(1, fmt.Sprint("m", i), 50*time.Millisecond)))
		pushed := time.Now()
		select {
		case at := <-got:
			t.Logf("%v after the push, due after 50ms", at.Sub(pushed))
			if at.Sub(pushed) > 5*time.Second {
				t.Error("it was not woken")
			}
		case <-ctx.Done():
			t.Fatal("nothing came")
		}
	}
}
