package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// Endpoint is the address of a backend's store, from which other processes can open the backend.
type Endpoint struct {
	Backend string   `json:"backend"` // rabbitmq, or one of redisBackends
	Addr    string   `json:"addr,omitempty"`
	Cluster []string `json:"cluster,omitempty"` // nodes of a Redis Cluster, or further nodes of RabbitMQ
	Master  string   `json:"master,omitempty"`  // its name, where Addr is a Sentinel's

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
func (e Endpoint) Open(context.Context) (backend.Backend, error) {
	if e.Backend == "rabbitmq" {
		return rabbitmq.New(e.Addr, rabbitmq.Hosts(e.Cluster...)), nil
	}
	open, ok := redisBackends[e.Backend]
	if !ok {
		return nil, fmt.Errorf("no backend is called %q", e.Backend)
	}
	client := e.client()
	return &redisBackend{open(client), client}, nil
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

// redisBackend closes its client too.
type redisBackend struct {
	backend.Backend
	client redis.UniversalClient
}

func (b *redisBackend) Close() error { return errors.Join(b.Backend.Close(), b.client.Close()) }

// Remains calls the backend's method of the same name.
func (b *redisBackend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return b.Backend.(admin.Remover).Remains(ctx, queues...)
}
