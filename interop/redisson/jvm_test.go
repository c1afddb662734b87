package interop

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

const newest = "4.7.0"

func TestKill(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	jvm := Start(t, newest, testenv.Redis(t).Addr())
	q := jvm.Queue("orders")
	consumer := got(q.Consume(ctx, 2))(t)
	taken := make(chan error, 1)
	go func() {
		_, err := q.Take(ctx, time.Minute)
		taken <- err
	}()
	jvm.Kill()
	jvm.Kill() // that it is dead already does no harm
	if err := <-taken; !errors.Is(err, ErrEnded) {
		t.Errorf("a call that waited gives %v", err)
	}
	if _, err := consumer.Next(ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("a consumer gives %v", err)
	}
	if _, err := jvm.Clock(ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("a new call gives %v", err)
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	p, err := launch(newest, "redis://localhost:1/no-number", settings{})
	if err == nil || !strings.Contains(err.Error(), "NumberFormatException") {
		t.Fatalf("starting with a bad address gives %v", err)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
}

// TestCluster has Go and Java push to and take from one queue on a Cluster.
func TestCluster(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	cluster := testenv.SharedRedisCluster(t)
	jvm := Start(t, newest, cluster.Addrs()[0], Cluster())
	ours := redisson.New(cluster.Client(t), redisson.WithCodec(redisson.String))
	t.Cleanup(func() { must(t, ours.Close()) })
	for _, name := range []string{"a", "b", "c", "{tag}:d"} {
		java := jvm.Queue(name, WithCodec(String))
		q := got(ours.Open(ctx, name, backend.Options{Logger: silent}))(t)
		must(t, errors.Join(q.Schedule(ctx, hence(20*time.Millisecond, "Go's for "+name))...))
		if value := got(java.Take(ctx, 20*time.Second))(t); value != "Go's for "+name {
			t.Errorf("Java received %v from %s", value, name)
		}
		must(t, java.Offer(ctx, "Java's for "+name, 20*time.Millisecond))
		if bodies := take(ctx, t, q, 1); bodies[0] != "Java's for "+name {
			t.Errorf("Go received %q from %s", bodies, name)
		}
	}
}
