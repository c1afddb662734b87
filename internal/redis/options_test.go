package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

func TestOpenReportsBadOptions(t *testing.T) {
	t.Parallel()
	client := redistest.Nowhere(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { must(t, ring.Close()) })
	const noClient = "invalid client <nil>: allowed is a go-redis client"
	for _, tt := range []struct {
		b    backend.Backend
		want string
	}{
		{zsetpoll.New(nil), noClient},
		{zsetpoll.New(client, nil), "invalid zsetpoll option <nil>: allowed is the result of "},
		{zsetpoll.New(client, zsetpoll.WaitReplicas(0, time.Second)), "invalid zsetpoll.WaitReplicas replicas 0: allowed is 1 to 100"},
		{zsetpoll.New(client, zsetpoll.WaitReplicas(101, time.Second)), "invalid zsetpoll.WaitReplicas replicas 101: "},
		{zsetpoll.New(client, zsetpoll.WaitReplicas(1, 0)), "allowed is 1ms to 1m"},
		{zsetpoll.New(client, zsetpoll.WaitDisk(-1, time.Second)), "invalid zsetpoll.WaitDisk replicas -1: "},
		{zsetpoll.New(client, zsetpoll.WaitDisk(0, time.Minute+1)), "allowed is 1ms to 1m"},
		{zsetpoll.New(ring, zsetpoll.WaitReplicas(1, time.Second)), "invalid "},
		{keyspace.New(nil), `invalid client "<nil>": allowed is a *redis.Client or a *redis.ClusterClient`},
		{keyspace.New(ring), "invalid client"},
		{keyspace.New(client, nil), "invalid keyspace option <nil>: allowed is the result of "},
		{keyspace.New(client, keyspace.Sweep(10*time.Millisecond-1)), "invalid keyspace.Sweep 9.999999ms: allowed is 10ms to 1m"},
		{keyspace.New(client, keyspace.Sweep(time.Minute+1)), "invalid keyspace.Sweep 1m0.000000001s: "},
		{keyspace.New(client, keyspace.Prefix("")), `prefix "": allowed is 1 to 64 bytes without braces`},
		{keyspace.New(client, keyspace.Prefix("a{b}")), `prefix "a{b}": `},
		{keyspace.New(client, keyspace.Sweep(0), keyspace.Sweep(time.Second), keyspace.Prefix("p")), "invalid keyspace.Sweep 0s: "},
		{redisson.New(nil), noClient},
		{redisson.New(client, nil), "invalid redisson option <nil>: allowed is the result of WithCodec, Format"},
		{redisson.New(client, redisson.WithCodec(nil)), "invalid redisson.WithCodec <nil>: allowed is a codec, such as redisson.String"},
		{redisson.New(client, redisson.Format(redisson.Both+1)), "invalid redisson.Format 3: allowed is V2, V1 or Both"},
		{redisson.New(client, redisson.Format(-1)), "invalid redisson.Format -1: allowed is V2, V1 or Both"},
		{redisson.New(client, redisson.NamePrefix("a\x00")), "invalid redisson.NamePrefix \"a\\x00\": allowed is up to 256 bytes without NUL"},
		{redisson.New(client, redisson.NamePrefix(strings.Repeat("x", 257))), strings.Repeat("x", 64) + "\"… (257 bytes): allowed is up to 256 bytes without NUL"},
		{redisson.New(client, redisson.Sweep(10*time.Millisecond-1)), "invalid redisson.Sweep 9.999999ms: allowed is 10ms to 1m"},
		{redisson.New(client, redisson.Sweep(time.Minute+1)), "invalid redisson.Sweep 1m0.000000001s: allowed is 10ms to 1m"},
		{redisson.New(client, redisson.Sweep(0), redisson.Sweep(time.Second)), "invalid redisson.Sweep 0s: allowed is 10ms to 1m"},
		{redisson.New(client, redisson.Format(9), redisson.Sweep(0)), "invalid redisson.Format 9: allowed is V2, V1 or Both\ninvalid redisson.Sweep 0s: allowed "},
	} {
		_, opened := tt.b.Open(t.Context(), "q", redistest.Silent())
		errs := []error{opened}
		switch b := tt.b.(type) {
		case *redisson.Backend:
			_, inspected := b.Inspect(t.Context(), "q")
			_, _, listed := b.Quarantine("q").List(t.Context(), "", 1)
			errs = append(errs, inspected, listed)
		case *keyspace.Backend:
			if err := b.Degraded(); err != nil {
				t.Errorf("%s: degraded before anything was opened: %v", tt.want, err)
			}
		}
		for _, err := range errs {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%T: got %v, want %s", tt.b, err, tt.want)
			}
		}
		must(t, tt.b.Close())
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	client := redistest.Nowhere(t)
	onRedis := backend.Traits{Name: "keyspace", Lacks: backend.Lacking(backend.Transactions), Resolution: time.Millisecond, Sweep: time.Second}
	often, seldom := onRedis, onRedis
	often.Sweep, seldom.Sweep = 10*time.Millisecond, time.Minute
	shared := backend.Traits{
		Name: "redisson", Resolution: time.Millisecond, Sweep: time.Second, AnyName: true,
		Lacks: backend.Lacking(backend.OwnIDs, backend.Deduplicating, backend.KeepingHeaders, backend.ChangingHeaders, backend.UniqueWindows, backend.Transactions, backend.CountingActivity),
	}
	alone := backend.Traits{
		Name: "redisson", Resolution: time.Millisecond, Sweep: time.Minute, AnyName: true,
		Lacks: backend.Lacking(backend.ChangingHeaders, backend.UniqueWindows, backend.Replacing, backend.Transactions, backend.CountingActivity),
	}
	for b, want := range map[backend.Backend]backend.Traits{
		keyspace.New(client): onRedis,
		keyspace.New(client, keyspace.Sweep(10*time.Millisecond)): often,
		keyspace.New(client, keyspace.Sweep(time.Minute)):         seldom,
		redisson.New(client): shared,
		redisson.New(client, redisson.WithCodec(redisson.Envelope), redisson.Sweep(time.Minute)): alone,
	} {
		if got := b.Traits(); got != want {
			t.Errorf("traits %+v, want %+v", got, want)
		}
	}
}

func TestOpenAfterClose(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		client := testenv.Redis(t, testenv.Private()).Client(t)
		b := s.open(client)
		redistest.Open(t, b, "q")
		must(t, b.Close(), b.Close())
		if _, err := b.Open(t.Context(), "q", redistest.Silent()); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Open after Close returns %v", err)
		}
		must(t, client.Ping(t.Context()).Err()) // the client is the caller's
	})
}
