package peers

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mikestefanello/backlite"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// backliteSystem has a new client for each consume, since a client is started once. The client that
// works adds too: it learns of no task that another one adds.
type backliteSystem struct {
	db     *sql.DB
	client *atomic.Pointer[backlite.Client]
}

// A task is a message of backlite.
type task struct{ Body []byte }

// Config is as in backlite.Task.
func (task) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "bench", MaxAttempts: 3, Timeout: 5 * time.Second}
}

func openBacklite(tb testing.TB) system {
	tb.Helper()
	s := backliteSystem{openFile(tb), new(atomic.Pointer[backlite.Client])}
	s.client.Store(s.newClient(tb, nil))
	load.Must(tb, s.client.Load().Install())
	return s
}

func (s backliteSystem) newClient(tb testing.TB, handle func(body []byte)) *backlite.Client {
	tb.Helper()
	c, err := backlite.NewClient(backlite.ClientConfig{
		DB: s.db, Logger: silent{}, NumWorkers: load.Workers, ReleaseAfter: 10 * time.Minute,
	})
	load.Must(tb, err)
	c.Register(backlite.NewQueue(func(_ context.Context, t task) error {
		handle(t.Body)
		return nil
	}))
	return c
}

// silent is a log that nobody reads.
type silent struct{}

func (silent) Info(string, ...any)  {}
func (silent) Error(string, ...any) {}

func (s backliteSystem) push(ctx context.Context, m delayq.Message) error {
	_, err := s.client.Load().Add(task{m.Body}).Ctx(ctx).At(m.Due).Save()
	return err
}

func (s backliteSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	return inTransaction(ctx, s.db, func(tx *sql.Tx) error {
		for _, m := range ms {
			if _, err := s.client.Load().Add(task{m.Body}).Ctx(ctx).At(m.Due).Tx(tx).Save(); err != nil {
				return err
			}
		}
		return nil
	}, s.client.Load().Notify)
}

func (s backliteSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	c := s.newClient(tb, handle)
	c.Start(context.Background())
	s.client.Store(c)
	return func() {
		tb.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), load.Patience)
		defer cancel()
		if !c.Stop(ctx) {
			tb.Error("backlite's workers did not stop")
		}
		s.client.Store(s.newClient(tb, nil))
	}
}

func (s backliteSystem) left(ctx context.Context) (int64, error) {
	return countRows(ctx, s.db, "backlite_tasks")
}

func (s backliteSystem) clear(tb testing.TB) {
	tb.Helper()
	_, err := s.db.Exec("DELETE FROM backlite_tasks")
	load.Must(tb, err)
}
