package peers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// asynqSettings are settings that its documentation offers.
type asynqSettings struct {
	servers     int // that share the 32 workers
	connections int // of the client that enqueues, 0 for its default
	// intervals between checks for due messages, and of an empty queue; 0 for its defaults, 5 s and
	// 1 s
	interval time.Duration
}

var (
	asDocumented = asynqSettings{servers: 1}

	// Shorter intervals gain nothing: tasks become due by whole seconds.
	tuned = asynqSettings{servers: 1, connections: 256, interval: 10 * time.Millisecond}

	// A server fetches tasks one after the other, so several of them fetch faster.
	tunedServers = asynqSettings{servers: 4, connections: 256, interval: 10 * time.Millisecond}
)

// asynqSystem cuts due times to whole seconds, as asynq does: messages are up to a second early.
type asynqSystem struct {
	redisServer
	asynqSettings
	enqueuer  *asynq.Client
	inspector *asynq.Inspector
}

func openAsynq(set asynqSettings) func(testing.TB) system {
	return func(tb testing.TB) system {
		tb.Helper()
		server := ownRedis(tb)
		opt := asynq.RedisClientOpt{Addr: server.Addr(), PoolSize: set.connections}
		c, i := asynq.NewClient(opt), asynq.NewInspector(opt)
		tb.Cleanup(func() {
			load.Must(tb, c.Close())
			load.Must(tb, i.Close())
		})
		return asynqSystem{server, set, c, i}
	}
}

func (s asynqSystem) push(ctx context.Context, m delayq.Message) error {
	_, err := s.enqueue(ctx, m)
	return err
}

func (s asynqSystem) enqueue(ctx context.Context, m delayq.Message) (*asynq.TaskInfo, error) {
	return s.enqueuer.EnqueueContext(ctx, asynq.NewTask("bench", m.Body), asynq.ProcessAt(m.Due))
}

// pushAll enqueues one by one: this release has no batches.
func (s asynqSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	return oneByOne(ctx, s, ms)
}

func (s asynqSystem) pushToCancel(ctx context.Context, m delayq.Message) (func(context.Context) error, error) {
	task, err := s.enqueue(ctx, m)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return s.inspector.DeleteTask(task.Queue, task.ID) }, nil
}

func (s asynqSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	take := func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}
	var servers []*asynq.Server
	for range s.servers {
		server := asynq.NewServer(asynq.RedisClientOpt{Addr: s.Addr()}, s.config())
		load.Must(tb, server.Start(asynq.HandlerFunc(take)))
		servers = append(servers, server)
	}
	return func() {
		for _, server := range servers {
			server.Shutdown()
		}
	}
}

func (s asynqSystem) config() asynq.Config {
	return asynq.Config{
		Concurrency:              load.Workers / s.servers,
		DelayedTaskCheckInterval: s.interval,
		TaskCheckInterval:        s.interval,
		LogLevel:                 asynq.ErrorLevel,
	}
}

// left reads the keys, for asynq's own inspector reads messages too.
func (s asynqSystem) left(ctx context.Context) (n int64, err error) {
	pipe := s.Control.Pipeline()
	for _, set := range []string{"scheduled", "retry", "archived"} {
		pipe.ZCard(ctx, "asynq:{default}:"+set)
	}
	for _, list := range []string{"pending", "active"} {
		pipe.LLen(ctx, "asynq:{default}:"+list)
	}
	counts, err := pipe.Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting tasks: %w", err)
	}
	for _, c := range counts {
		n += c.(interface{ Val() int64 }).Val()
	}
	return n, nil
}

// clear leaves the list of queues, which the client writes once.
func (s asynqSystem) clear(tb testing.TB) {
	tb.Helper()
	s.redisServer.clear(tb)
	load.Must(tb, s.Control.SAdd(context.Background(), "asynq:queues", "default").Err())
}
