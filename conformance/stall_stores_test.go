package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/postgres"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// A stallStore is a store behind a server that stops replying. Without a server nothing stalls.
type stallStore struct {
	upstream func(*testing.T) []string
	open     func(testing.TB, *stallServer) backend.Backend
	url      func(t testing.TB, s *stallServer, queue string) string // nil for none
	keeps    bool                                                    // a message that an ended Receive has claimed is handed out again as attempt 1
}

// A stallServer is the proxies before one server, or before each node of a Cluster.
type stallServer struct {
	route map[string]*testenv.FaultProxy // by the address behind it
	addr  string                         // of the first proxy
}

// serve returns nil for a store without a server.
func (s stallStore) serve(t *testing.T) *stallServer {
	t.Helper()
	if s.upstream == nil {
		return nil
	}
	server := &stallServer{route: make(map[string]*testenv.FaultProxy)}
	for _, addr := range s.upstream(t) {
		server.route[addr] = testenv.Proxy(t, addr)
		server.addr = cmp.Or(server.addr, server.route[addr].Addr())
	}
	return server
}

func (s *stallServer) stallAfter(replies int) {
	for _, p := range s.route {
		p.StallAfter(replies)
	}
}

// stalled reports whether a reply is held back.
func (s *stallServer) stalled() bool {
	for _, p := range s.route {
		if p.Stalled() {
			return true
		}
	}
	return false
}

func (s *stallServer) resume() {
	for _, p := range s.route {
		p.Resume()
	}
}

// dial connects to the proxies instead of the nodes' own addresses.
func (s *stallServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, s.route[addr].Addr())
}

func stallStores() map[string]stallStore {
	redisAt := func(t *testing.T) []string { return []string{testenv.SharedRedis(t).Addr()} }
	clusterAt := func(t *testing.T) []string { return testenv.SharedRedisCluster(t).Addrs() }
	// The client library's defaults end no call by its context.
	onRedis := func(scheme string, open func(redis.UniversalClient) backend.Backend) stallStore {
		return stallStore{upstream: redisAt, keeps: true,
			open: func(t testing.TB, s *stallServer) backend.Backend {
				client := redis.NewClient(&redis.Options{Addr: s.addr})
				t.Cleanup(func() { _ = client.Close() })
				return open(client)
			},
			url: func(_ testing.TB, s *stallServer, queue string) string { return fmt.Sprintf(scheme, s.addr, queue) },
		}
	}
	onCluster := func(open func(redis.UniversalClient) backend.Backend) stallStore {
		return stallStore{upstream: clusterAt, keeps: true, open: func(t testing.TB, s *stallServer) backend.Backend {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testenv.SharedRedisCluster(t).Addrs(), Dialer: s.dial})
			t.Cleanup(func() { _ = client.Close() })
			return open(client)
		}}
	}
	claiming := func(name string, m zsetpoll.Mode) stallStore {
		return onRedis("zsetpoll://%s/%s?claims="+name, func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(m)) })
	}
	return map[string]stallStore{
		"memory":             {open: func(testing.TB, *stallServer) backend.Backend { return memory.New() }, keeps: true},
		"zsetpoll-cluster":   onCluster(func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) }),
		"keyspace-cluster":   onCluster(func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }),
		"zsetpoll":           claiming("script", zsetpoll.Script),
		"zsetpoll-arbitrate": claiming("arbitrate", zsetpoll.Arbitrate),
		"zsetpoll-mover":     claiming("mover", zsetpoll.Mover),
		"zsetpoll-confirmed": onRedis("zsetpoll://%s/%s?wait_replicas=1,1ms", func(c redis.UniversalClient) backend.Backend {
			return zsetpoll.New(c, zsetpoll.WaitReplicas(1, time.Millisecond))
		}),
		"keyspace": onRedis("keyspace://%s/%s", func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }),
		"redisson": onRedis("redisson://%s/%s?format=both&codec=bytes", func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Bytes), redisson.Format(redisson.Both))
		}),
		"redisson-envelope": onRedis("redisson://%s/%s?format=both", func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.Format(redisson.Both))
		}),
		"rabbitmq": stallRabbit(),
		"postgres": stallPostgres(),
	}
}

func stallRabbit() stallStore {
	url := func(t testing.TB, s *stallServer) string {
		server := testenv.SharedRabbitMQ(t)
		return strings.Replace(server.VhostURL("/"), server.Addr(), s.addr, 1)
	}
	return stallStore{
		upstream: func(t *testing.T) []string { return []string{testenv.SharedRabbitMQ(t).Addr()} },
		open: func(t testing.TB, s *stallServer) backend.Backend {
			return &openedRabbit{Backend: rabbitmq.New(url(t, s))}
		},
		url: func(t testing.TB, s *stallServer, queue string) string {
			return strings.Replace(url(t, s), "amqp://", "rabbitmq://", 1) + "/" + queue
		},
	}
}

func stallPostgres() stallStore {
	addr := func(t testing.TB) string {
		at, err := url.Parse(testenv.SharedPostgres(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		return at.Host
	}
	at := func(t testing.TB, s *stallServer) string {
		return strings.Replace(testenv.SharedPostgres(t).URL(), addr(t), s.addr, 1)
	}
	return stallStore{
		keeps:    true,
		upstream: func(t *testing.T) []string { return []string{addr(t)} },
		open: func(t testing.TB, s *stallServer) backend.Backend {
			pool, err := pgxpool.New(t.Context(), at(t, s))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			return postgres.New(pool, postgres.Prefix(fmt.Sprintf("stall%d_", prefixes.Add(1))))
		},
		url: func(t testing.TB, s *stallServer, queue string) string {
			return fmt.Sprintf("%s&queue=%s&prefix=stall%d_", at(t, s), queue, prefixes.Add(1))
		},
	}
}
