package keyspace_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var (
	must  = redistest.Must
	await = redistest.Await
)

// noise is the delay that a busy machine may add to every wait. With that wait, it is below a sweep of a minute.
const noise = 30 * time.Second

const lease = time.Minute

var silent = redistest.Silent().Logger

// server starts a server whose configuration a test may change.
func server(t *testing.T, opts ...testenv.Option) *testenv.RedisServer {
	t.Helper()
	return testenv.Redis(t, append([]testenv.Option{testenv.Private()}, opts...)...)
}

func newBackend(t *testing.T, client redis.UniversalClient, opts ...keyspace.Option) *keyspace.Backend {
	t.Helper()
	b := keyspace.New(client, opts...)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func open(t *testing.T, b backend.Backend) backend.Queue {
	t.Helper()
	return redistest.Open(t, b, "q")
}

func openLogging(t *testing.T, b backend.Backend, name string, log *slog.Logger) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), name, backend.Options{Logger: log})
	must(t, err)
	return q
}

// openKnown opens a queue, again until the backend knows whether events come, for which an Open waits for 3 s only.
func openKnown(t *testing.T, b backend.Backend, name string, log *slog.Logger) (q backend.Queue) {
	t.Helper()
	for quick := false; !quick; {
		began := time.Now()
		q = openLogging(t, b, name, log)
		quick = time.Since(began) < 3*time.Second
	}
	return q
}

// degraded returns what a backend reports after openKnown. On a busy machine a server may confirm a subscription
// after the backend has reported that it does not.
func degraded(t *testing.T, b *keyspace.Backend) (err error) {
	t.Helper()
	await(t, "the subscription", func() bool {
		err = b.Degraded()
		return err == nil || !strings.Contains(err.Error(), unconfirmed)
	})
	return err
}

const unconfirmed = "has not confirmed"

func push(t *testing.T, q backend.Queue, id string, delay time.Duration) {
	t.Helper()
	must(t, q.Schedule(t.Context(), []backend.Message{{ID: id, Delay: delay}})...)
}

// sleeper is a Receive that waits.
type sleeper struct{ got chan arrival }

type arrival struct {
	backend.Delivery
	err error
}

// sleep starts a Receive, and returns when it sleeps, after the looks that follow subscriptions.
func sleep(t *testing.T, client redis.Cmdable, q backend.Queue) *sleeper {
	t.Helper()
	s := sleepIn(t, q)
	settle(t, client)
	return s
}

// settle waits until the server has run no script for a while, since all workers sleep. One that is
// not asleep yet finds a message without a wake-up, which hides a fault and fails no test.
func settle(t *testing.T, client redis.Cmdable) {
	t.Helper()
	await(t, "the workers to sleep", func() bool {
		before := redistest.Calls(t, client)["evalsha"]
		time.Sleep(redistest.Quiet)
		return before > 0 && redistest.Calls(t, client)["evalsha"] == before
	})
}

// sleepIn lets a Receive wait until the test ends.
func sleepIn(t *testing.T, q backend.Queue) *sleeper {
	t.Helper()
	ctx := t.Context()
	s := &sleeper{got: make(chan arrival, 1)}
	go func() {
		ds, err := q.Receive(ctx, 1, lease)
		if err != nil {
			s.got <- arrival{err: err}
			return
		}
		s.got <- arrival{Delivery: ds[0]}
	}()
	return s
}

// woken expects the message within a time.
func (s *sleeper) woken(t *testing.T, id string, within time.Duration) {
	t.Helper()
	select {
	case a := <-s.got:
		must(t, a.err)
		if a.ID != id {
			t.Fatalf("message %s came; expected was %s", a.ID, id)
		}
	case <-time.After(within):
		t.Fatalf("message %s did not come within %v", id, within)
	}
}

func take(t *testing.T, q backend.Queue, within time.Duration) backend.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ds, err := q.Receive(ctx, 1, lease)
	must(t, err)
	return ds[0]
}

func flags(t *testing.T, client redis.Cmdable) string {
	t.Helper()
	config, err := client.ConfigGet(t.Context(), "notify-keyspace-events").Result()
	must(t, err)
	return config["notify-keyspace-events"]
}

func numbered(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }
