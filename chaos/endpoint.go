package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/postgres"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

// Endpoint is the address of a backend's store, from which other processes can open the backend.
type Endpoint struct {
	Backend string   `json:"backend"`           // rabbitmq, sqlite, postgres, or one of redisBackends
	Addr    string   `json:"addr,omitempty"`    // or a URL, or the path of a file
	Cluster []string `json:"cluster,omitempty"` // nodes of a Redis Cluster, or further nodes of RabbitMQ
	Master  string   `json:"master,omitempty"`  // its name, where Addr is a Sentinel's
	Shards  int      `json:"shards,omitempty"`  // of zsetpoll; 0 for none

	// Hooks see all commands of a client of a single Redis, in this process only.
	Hooks []redis.Hook `json:"-"`
}

// Timeouts are short, so that clients meet a fault while it lasts.
const (
	dialTime    = time.Second
	ReadTimeout = 700 * time.Millisecond
	sweep       = 200 * time.Millisecond
)

var redisBackends = map[string]func(redis.UniversalClient) backend.Backend{
	"zsetpoll": func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Poll(sweep)) },
	"keyspace": func(c redis.UniversalClient) backend.Backend { return keyspace.New(c, keyspace.Sweep(sweep)) },
	"redisson": func(c redis.UniversalClient) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Bytes), redisson.Sweep(sweep))
	},
	"redisson-envelope": func(c redis.UniversalClient) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Envelope), redisson.Sweep(sweep))
	},
}

// Open opens a backend with connections of its own.
func (e Endpoint) Open(ctx context.Context) (backend.Backend, error) {
	switch e.Backend {
	case "rabbitmq":
		return rabbitmq.New(e.Addr, rabbitmq.Hosts(e.Cluster...)), nil
	case "sqlite":
		return sqlite.New(e.Addr), nil
	case "postgres":
		return e.openPostgres(ctx)
	}
	open, ok := redisBackends[e.Backend]
	if !ok {
		return nil, fmt.Errorf("no backend is called %q", e.Backend)
	}
	client := e.client()
	if e.Shards > 0 {
		return &owner{zsetpoll.New(client, zsetpoll.Poll(sweep), zsetpoll.Shards(e.Shards)), client.Close}, nil
	}
	return &owner{open(client), client.Close}, nil
}

// openPostgres opens a pool as small as that of a Redis client.
func (e Endpoint) openPostgres(ctx context.Context) (backend.Backend, error) {
	cfg, err := pgxpool.ParseConfig(e.Addr)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.ConnConfig.ConnectTimeout = 4, dialTime
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, err
	}
	return &owner{postgres.New(pool, postgres.Poll(sweep)), func() error { pool.Close(); return nil }}, nil
}

func (e Endpoint) client() redis.UniversalClient {
	o := &redis.UniversalOptions{Addrs: e.Cluster, MasterName: e.Master, DialTimeout: dialTime, ReadTimeout: ReadTimeout}
	switch {
	case len(e.Cluster) > 0:
		return redis.NewClusterClient(o.Cluster())
	case e.Master != "":
		o.Addrs = []string{e.Addr}
		return redis.NewFailoverClient(o.Failover())
	}
	o.Addrs, o.PoolSize = []string{e.Addr}, 4
	c := redis.NewClient(o.Simple())
	for _, h := range e.Hooks {
		c.AddHook(h)
	}
	return c
}

// owner closes the backend's client too.
type owner struct {
	backend.Backend
	closeClient func() error
}

func (o *owner) Close() error { return errors.Join(o.Backend.Close(), o.closeClient()) }

// Remains calls the backend's method of the same name.
func (o *owner) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return o.Backend.(admin.Remover).Remains(ctx, queues...)
}

// Remove calls the backend's method of the same name.
func (o *owner) Remove(ctx context.Context, queue string) error {
	return o.Backend.(admin.Remover).Remove(ctx, queue)
}
