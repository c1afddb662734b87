package peers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

// gueSettings are settings that its documentation offers.
type gueSettings struct {
	connections int32         // 0 for pgx's default of four
	interval    time.Duration // between looks of a worker that has found nothing; 0 for 5 s
}

var gueTuned = gueSettings{connections: 2 * load.Workers, interval: 10 * time.Millisecond}

type gueSystem struct {
	gueSettings
	*testenv.PostgresServer
	pool   *pgxpool.Pool
	client *gue.Client
}

func openGue(set gueSettings) func(testing.TB) system {
	return func(tb testing.TB) system {
		tb.Helper()
		s := gueSystem{gueSettings: set, PostgresServer: testenv.Postgres(tb)}
		config, err := pgxpool.ParseConfig(s.URL())
		load.Must(tb, err)
		if set.connections > 0 {
			config.MaxConns = set.connections
		}
		s.pool, err = pgxpool.NewWithConfig(context.Background(), config)
		load.Must(tb, err)
		tb.Cleanup(s.pool.Close)
		_, err = s.pool.Exec(context.Background(), schemaOf(tb, "github.com/vgarvardt/gue/v5", "migrations/schema.sql"))
		load.Must(tb, err)
		s.client, err = gue.NewClient(pgxv5.NewConnPool(s.pool))
		load.Must(tb, err)
		return s
	}
}

func jobOf(m delayq.Message) *gue.Job { return &gue.Job{Type: "bench", Args: m.Body, RunAt: m.Due} }

func (s gueSystem) push(ctx context.Context, m delayq.Message) error {
	return s.client.Enqueue(ctx, jobOf(m))
}

func (s gueSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	jobs := make([]*gue.Job, len(ms))
	for i, m := range ms {
		jobs[i] = jobOf(m)
	}
	return s.client.EnqueueBatch(ctx, jobs)
}

func (s gueSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	var opts []gue.WorkerPoolOption
	if s.interval > 0 {
		opts = append(opts, gue.WithPoolPollInterval(s.interval))
	}
	workers, err := gue.NewWorkerPool(s.client, gue.WorkMap{"bench": func(_ context.Context, j *gue.Job) error {
		handle(j.Args)
		return nil
	}}, load.Workers, opts...)
	load.Must(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx) }()
	return func() {
		tb.Helper()
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("gue: %v", err)
		}
	}
}

func (s gueSystem) left(ctx context.Context) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM gue_jobs").Scan(&n); err != nil {
		return 0, fmt.Errorf("counting jobs: %w", err)
	}
	return n, nil
}

func (s gueSystem) clear(tb testing.TB) {
	tb.Helper()
	_, err := s.pool.Exec(context.Background(), "TRUNCATE gue_jobs")
	load.Must(tb, err)
}
