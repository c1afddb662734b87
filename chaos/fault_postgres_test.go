package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// postgresGreeting asks for TLS, which the server does not have.
var postgresGreeting = greeting{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "N"}

// adminName is the application name of the test's own connections, which no fault ends.
const adminName = "chaos"

// postgresFaults are the faults of a PostgreSQL server.
func postgresFaults(s *testenv.PostgresServer, admin *pgxpool.Pool) []*fault {
	kill := func(t *testing.T) { t.Helper(); s.Kill(t) }
	stop := func(mode string) func(*testing.T) {
		return func(t *testing.T) { t.Helper(); s.Stop(t, mode) }
	}
	return []*fault{
		postgresRestarted("server kill -9", s, kill), postgresRestarted("pg_ctl stop -m fast", s, stop("fast")),
		postgresRestarted("pg_ctl stop -m immediate", s, stop("immediate")),
		lasting("server SIGSTOP", 1, 900*time.Millisecond, breaks, func(i *injection) func() int {
			resume := s.Pause(i.T)
			effect := postgresGreeting.silent(s.Addr())
			return func() int { resume(); return effect }
		}).alone(),
		instant("pg_terminate_backend", 3, breaks, func(i *injection) int { return onOthers(i, admin, "pg_terminate_backend(pid)", "true") }),
		instant("pg_cancel_backend", 2, judge.Window{}, func(i *injection) int {
			return onOthers(i, admin, "pg_cancel_backend(pid)", "state = 'active'")
		}),
		notifyDropped(admin), tableLocked(admin), snapshotHeld(admin), vacuumFull(admin),
	}
}

// postgresRestarted ends a server and starts it again.
func postgresRestarted(name string, s *testenv.PostgresServer, end func(*testing.T)) *fault {
	return instant(name, 1, breaks, func(i *injection) int {
		before := s.Pid()
		end(i.T)
		time.Sleep(time.Duration(i.rng.IntN(500)) * time.Millisecond) // it is down for this long
		s.Restart(i.T)
		return count(s.Pid() != before)
	}).alone()
}

// onOthers calls a function of the server on the connections of clients, and returns on how many.
func onOthers(i *injection, admin *pgxpool.Pool, call, which string) (n int) {
	i.Helper()
	must(i.T, persist(func(ctx context.Context) error {
		return admin.QueryRow(ctx, "SELECT count("+call+") FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1 AND "+which,
			adminName).Scan(&n)
	}))
	return n
}

// persist repeats a statement of the test's own: a restart of the server has broken the pool's
// connection.
func persist(do func(context.Context) error) (err error) {
	poll(30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = do(ctx)
		return err == nil
	})
	return err
}

// notifyDropped ends the connections that listen, again and again. They miss what is notified
// meanwhile.
func notifyDropped(admin *pgxpool.Pool) *fault {
	return lasting("LISTEN dropped", 2, 500*time.Millisecond, judge.Window{}, func(i *injection) func() int {
		drop := func() int { return onOthers(i, admin, "pg_terminate_backend(pid)", "query LIKE 'LISTEN%'") }
		dropped := drop()
		return func() int { return dropped + drop() }
	})
}

// tableLocked holds the lock on the messages that a migration or a TRUNCATE takes.
func tableLocked(admin *pgxpool.Pool) *fault {
	return inTransaction("table locked", 1, 600*time.Millisecond, breaks, admin, "LOCK TABLE delayq_messages IN ACCESS EXCLUSIVE MODE")
}

// snapshotHeld keeps a snapshot, as a dump does: no vacuum removes what is deleted meanwhile.
func snapshotHeld(admin *pgxpool.Pool) *fault {
	return inTransaction("snapshot held", 1, 3*time.Second, judge.Window{}, admin, "SELECT count(*) FROM delayq_messages")
}

// inTransaction keeps a transaction open after a statement.
func inTransaction(name string, weight int, length time.Duration, w judge.Window, admin *pgxpool.Pool, statement string) *fault {
	return lasting(name, weight, length, w, func(i *injection) func() int {
		var tx pgx.Tx
		must(i.T, persist(func(ctx context.Context) (err error) {
			if tx, err = admin.BeginTx(context.WithoutCancel(ctx), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}); err != nil {
				return err
			}
			if _, err = tx.Exec(ctx, statement); err != nil {
				_ = tx.Rollback(ctx)
			}
			return err
		}))
		return func() int { return count(tx.Rollback(context.Background()) == nil) }
	}).alone()
}

// vacuumFull rewrites the table, which is locked meanwhile.
func vacuumFull(admin *pgxpool.Pool) *fault {
	return instant("VACUUM FULL", 1, breaks, func(i *injection) int {
		must(i.T, persist(func(ctx context.Context) error {
			_, err := admin.Exec(ctx, "VACUUM FULL delayq_messages")
			return err
		}))
		return 1
	})
}
