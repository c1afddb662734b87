package peers

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/httpclient"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/postgres"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/server"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

func openZsetpoll(tb testing.TB) system {
	return openOnRedis(tb, func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) })
}

func openKeyspace(tb testing.TB) system {
	return openOnRedis(tb, func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) })
}

func openRedisson(tb testing.TB) system {
	return openOnRedis(tb, func(c redis.UniversalClient) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Bytes))
	})
}

// ours is a queue of this library with its default settings.
type ours struct{ queue delayq.Queue }

func openQueue(tb testing.TB, store backend.Backend) ours {
	tb.Helper()
	q, err := delayq.New(context.Background(), "bench", delayq.WithBackend(store), load.Quiet)
	load.Must(tb, err)
	tb.Cleanup(func() {
		load.Must(tb, q.Close())
		load.Must(tb, store.Close())
	})
	return ours{q}
}

func (o ours) push(ctx context.Context, m delayq.Message) error {
	_, err := o.queue.Push(ctx, m.Body, delayq.At(m.Due))
	return err
}

func (o ours) pushAll(ctx context.Context, ms []delayq.Message) error {
	_, err := o.queue.PushBatch(ctx, ms)
	return err
}

func (o ours) pushToCancel(ctx context.Context, m delayq.Message) (func(context.Context) error, error) {
	id, err := o.queue.Push(ctx, m.Body, delayq.At(m.Due))
	return func(ctx context.Context) error { return o.queue.Cancel(ctx, id) }, err
}

func (o ours) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	return load.Consume(tb, func(d *delayq.Delivery) { handle(d.Body) }, o.queue)
}

func (o ours) left(ctx context.Context) (int64, error) {
	s, err := o.queue.Stats(ctx)
	return s.Scheduled + s.Ready + s.InFlight + s.Dead, err
}

type onRedis struct {
	redisServer
	ours
}

func openOnRedis(tb testing.TB, over func(redis.UniversalClient) backend.Backend) system {
	tb.Helper()
	server := ownRedis(tb)
	return onRedis{server, openQueue(tb, over(server.Client(tb)))}
}

type inMemory struct{ ours }

func openMemory(tb testing.TB) system {
	tb.Helper()
	return inMemory{openQueue(tb, memory.New())}
}

func (m inMemory) clear(tb testing.TB) {
	_, err := m.queue.Purge(context.Background())
	load.Must(tb, err)
}

func (inMemory) weigh(testing.TB) weight { return weight{memory: heap()} }

// purged is a queue that is emptied by its own means.
type purged struct{ ours }

func (p purged) clear(tb testing.TB) {
	tb.Helper()
	_, err := p.queue.Purge(context.Background())
	load.Must(tb, err)
}

func openSQLite(tb testing.TB) system {
	tb.Helper()
	return purged{openQueue(tb, sqlite.New(filepath.Join(tb.TempDir(), "queue.db")))}
}

// openServe is sqlite behind a server, as delayq serve is, over connections of the loopback.
func openServe(tb testing.TB) system {
	tb.Helper()
	store := sqlite.New(filepath.Join(tb.TempDir(), "queue.db"))
	s, err := server.New(store, server.WithLogger(slog.New(slog.DiscardHandler)))
	load.Must(tb, err)
	h := httptest.NewServer(s)
	tb.Cleanup(func() {
		s.Drain()
		h.Close()
		s.Close()
		load.Must(tb, store.Close())
	})
	client, err := httpclient.Dial(context.Background(), h.URL)
	load.Must(tb, err)
	return purged{openQueue(tb, client)}
}

func openPostgres(tb testing.TB) system {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), testenv.Postgres(tb).URL())
	load.Must(tb, err)
	tb.Cleanup(pool.Close)
	return purged{openQueue(tb, postgres.New(pool))}
}

func ownVhost(tb testing.TB) string {
	tb.Helper()
	server := testenv.SharedRabbitMQ(tb)
	return server.VhostURL(server.Vhost(tb))
}

// onRabbit counts here, for the broker's counts are behind.
type onRabbit struct {
	ours
	*flow
}

func openRabbit(tb testing.TB) system {
	tb.Helper()
	return onRabbit{openQueue(tb, rabbitmq.New(ownVhost(tb))), new(flow)}
}

func (r onRabbit) push(ctx context.Context, m delayq.Message) error {
	r.came(1)
	return r.ours.push(ctx, m)
}

func (r onRabbit) pushAll(ctx context.Context, ms []delayq.Message) error {
	r.came(len(ms))
	return r.ours.pushAll(ctx, ms)
}

func (r onRabbit) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	return r.ours.consume(tb, r.counting(handle))
}

func (r onRabbit) left(context.Context) (int64, error) { return r.count.Load(), nil }
