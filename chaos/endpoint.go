package chaos

import (
	"context"
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

// Endpoint is where a backend's store is, so that another process can open it too.
type Endpoint struct {
	Backend string   `json:"backend"` // zsetpoll, keyspace, redisson, redisson-envelope, rabbitmq
	Addr    string   `json:"addr,omitempty"`
	Cluster []string `json:"cluster,omitempty"` // nodes of a Redis Cluster, or further nodes of RabbitMQ
	Master  string   `json:"master,omitempty"`  // its name, where Addr is a Sentinel's

	// Hooks see all commands of a client of a single Redis, in this process only.
	Hooks []redis.Hook `json:"-"`
}

// Clients give up soon, so that a fault is felt while it lasts.
const (
	dialTime    = time.Second
	ReadTimeout = 700 * time.Millisecond
	sweep       = 200 * time.Millisecond
)

// Open opens a backend with connections of its own.
func (e Endpoint) Open(context.Context) (backend.Backend, error) {
	if e.Backend == "rabbitmq" {
		return rabbitmq.New(e.Addr, rabbitmq.Hosts(e.Cluster...)), nil
	}
	client := e.client()
	b, err := e.on(client)
	if err != nil {
		return nil, err
	}
	return &owning{b, client}, nil
}

func (e Endpoint) client() redis.UniversalClient {
	if len(e.Cluster) > 0 {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: e.Cluster, DialTimeout: dialTime, ReadTimeout: ReadTimeout})
	}
	if e.Master != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: e.Master, SentinelAddrs: []string{e.Addr}, DialTimeout: dialTime, ReadTimeout: ReadTimeout,
		})
	}
	c := redis.NewClient(&redis.Options{Addr: e.Addr, DialTimeout: dialTime, ReadTimeout: ReadTimeout, PoolSize: 4})
	for _, h := range e.Hooks {
		c.AddHook(h)
	}
	return c
}

func (e Endpoint) on(c redis.UniversalClient) (backend.Backend, error) {
	switch e.Backend {
	case "zsetpoll":
		return zsetpoll.New(c, zsetpoll.Poll(sweep)), nil
	case "zsetpoll-arbitrate":
		return zsetpoll.New(c, zsetpoll.Poll(sweep), zsetpoll.Claims(zsetpoll.Arbitrate)), nil
	case "zsetpoll-mover":
		return zsetpoll.New(c, zsetpoll.Poll(sweep), zsetpoll.Claims(zsetpoll.Mover)), nil
	case "keyspace":
		return keyspace.New(c, keyspace.Sweep(sweep)), nil
	case "redisson":
		return redisson.New(c, redisson.WithCodec(redisson.Bytes), redisson.Sweep(sweep)), nil
	case "redisson-envelope":
		return redisson.New(c, redisson.WithCodec(redisson.Envelope), redisson.Sweep(sweep)), nil
	default:
		return nil, fmt.Errorf("no backend is called %q", e.Backend)
	}
}

// owning closes its client too.
type owning struct {
	backend.Backend
	client redis.UniversalClient
}

func (o *owning) Close() error {
	err := o.Backend.Close()
	_ = o.client.Close() // it fails only when it is closed
	return err
}

// Remains is that of the backend.
func (o *owning) Remains(ctx context.Context, queues ...string) ([]string, error) {
	r, ok := o.Backend.(admin.Remover)
	if !ok {
		return nil, nil
	}
	return r.Remains(ctx, queues...)
}
