package peers

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

func lacksPostgres() error {
	_, err := testenv.FindPostgres()
	return err
}

// riverSettings are settings that its documentation offers. The interval of 5 s at which it looks
// for due jobs is not among them.
type riverSettings struct {
	server      []string // of Postgres
	connections int32    // 0 for pgx's default of four
	// the least between fetches; 0 for its defaults, 100 ms and polls each second
	interval time.Duration
}

var (
	riverDefaults = riverSettings{}

	// The server may forget the last moments when the machine fails, as the others that are
	// measured here may.
	riverTuned = riverSettings{
		server:      []string{"synchronous_commit=off", "shared_buffers=512MB", "max_wal_size=4GB"},
		connections: load.Workers,
		interval:    river.FetchCooldownMin,
	}
)

// riverSystem runs on Postgres, which its documentation puts before SQLite.
type riverSystem struct {
	riverSettings
	*testenv.PostgresServer
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // only inserts
}

func openRiver(set riverSettings) func(testing.TB) system {
	return func(tb testing.TB) system {
		tb.Helper()
		s := riverSystem{riverSettings: set, PostgresServer: testenv.Postgres(tb, set.server...)}
		config, err := pgxpool.ParseConfig(s.URL())
		load.Must(tb, err)
		if set.connections > 0 {
			config.MaxConns = set.connections
		}
		s.pool, err = pgxpool.NewWithConfig(context.Background(), config)
		load.Must(tb, err)
		tb.Cleanup(s.pool.Close)
		driver := riverpgxv5.New(s.pool)
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		load.Must(tb, err)
		_, err = migrator.Migrate(context.Background(), rivermigrate.DirectionUp, nil)
		load.Must(tb, err)
		s.client, err = river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
		load.Must(tb, err)
		return s
	}
}

type job struct {
	Body []byte `json:"body"`
}

func (job) Kind() string { return "bench" }

func (s riverSystem) push(ctx context.Context, m delayq.Message) error {
	_, err := s.client.Insert(ctx, job{m.Body}, &river.InsertOpts{ScheduledAt: m.Due})
	return err
}

func (s riverSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	jobs := make([]river.InsertManyParams, len(ms))
	for i, m := range ms {
		jobs[i] = river.InsertManyParams{Args: job{m.Body}, InsertOpts: &river.InsertOpts{ScheduledAt: m.Due}}
	}
	_, err := s.client.InsertManyFast(ctx, jobs)
	return err
}

func (s riverSystem) pushToCancel(ctx context.Context, m delayq.Message) (func(context.Context) error, error) {
	inserted, err := s.client.Insert(ctx, job{m.Body}, &river.InsertOpts{ScheduledAt: m.Due})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := s.client.JobCancel(ctx, inserted.Job.ID)
		return err
	}, nil
}

func (s riverSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	list := river.NewWorkers()
	river.AddWorker(list, river.WorkFunc(func(_ context.Context, j *river.Job[job]) error {
		handle(j.Args.Body)
		return nil
	}))
	c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Workers: list, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: load.Workers}},
		FetchCooldown: s.interval, FetchPollInterval: s.interval, Logger: slog.New(slog.DiscardHandler),
	})
	load.Must(tb, err)
	load.Must(tb, c.Start(context.Background()))
	return func() {
		tb.Helper()
		load.Must(tb, c.Stop(context.Background()))
	}
}

// left leaves out the rows of done jobs, which river keeps for a day.
func (s riverSystem) left(ctx context.Context) (n int64, err error) {
	err = s.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'cancelled')").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", err)
	}
	return n, nil
}

func (s riverSystem) clear(tb testing.TB) {
	tb.Helper()
	_, err := s.pool.Exec(context.Background(), "TRUNCATE river_job")
	load.Must(tb, err)
}

func (s riverSystem) weigh(tb testing.TB) (w weight) {
	tb.Helper()
	load.Must(tb, s.pool.QueryRow(context.Background(), "SELECT pg_total_relation_size('river_job')").Scan(&w.disk))
	return w
}

// spent is the processor time of the server so far.
func (s riverSystem) spent(tb testing.TB) time.Duration { return spentBy(tb, s.Pid()) }
