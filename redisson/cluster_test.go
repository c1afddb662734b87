package redisson_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

func TestNamesOnACluster(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedisCluster(t).Client(t)
	ctx := redistest.Deadline(t)
	b := redisson.New(client)
	t.Cleanup(func() { must(t, b.Close()) })
	none := redistest.Silent()
	for _, name := range []string{"a{", "a{b", "a{}b", "a}b"} {
		_, err := b.Open(ctx, name, none)
		_, inspected := b.Inspect(ctx, name)
		for _, err := range []error{err, inspected} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), `queue name "`+name+`": allowed is on a Cluster, a name without braces or with one {tag}`) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	for _, name := range []string{"a}{b}", "{a}{b}", "plain", "with{tag}", "ünï cöde"} {
		q, err := b.Open(ctx, name, none)
		must(t, err)
		must(t, q.Schedule(ctx, []backend.Message{{Body: []byte("hello")}})...)
		ds, err := q.Receive(ctx, 1, time.Minute)
		must(t, err)
		if string(ds[0].Body) != "hello" {
			t.Errorf("%s: got %q", name, ds[0].Body)
		}
		must(t, q.Ack(ctx, leases(ds))...)
		must(t, q.Close())
	}
}

// On one server any name will do.
func TestNamesOnAServer(t *testing.T) {
	t.Parallel()
	p := on(t, testenv.Redis(t, testenv.Private()))
	for _, p.name = range []string{"a{", "a{b", "a{}b", "a}b", "a}{b}", "{a}{b}", "plain"} {
		q := p.open()
		p.push(q, 0, "hello")
		p.takes(q, "hello")
		if left := slices.DeleteFunc(p.raw.Keys(p.ctx, "*").Val(), redistest.Stays); len(left) > 0 {
			t.Errorf("%s: left over: %q", p.name, left)
		}
	}
}
