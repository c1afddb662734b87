package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// TestKeys fills every key that a queue can have, on a Cluster, where a key of another slot would
// be rejected.
func TestKeys(t *testing.T) {
	cluster := testenv.SharedRedisCluster(t)
	for _, name := range []string{"orders", "a:b", "with space", "ünï", "tab\tand*and?[x]", strings.Repeat("n", backend.MaxName)} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, ctx: t.Context(), prefix: "keys:{" + name + "}:"}
			client := cluster.Client(t)
			b.Store = store.New(store.Config{Client: client, Triggered: true, Prefix: "keys"}, name, nil)
			b.fill()
			var all []string
			for _, node := range cluster.Nodes() {
				keys, err := node.Client(t).Keys(b.ctx, "*").Result()
				must(b.t, err)
				all = append(all, keys...)
			}
			b.checkKeys(all)
			must(b.t, client.Del(b.ctx, all...).Err())
		})
	}
}

// fill makes all keys that there are: messages that wait, come back, are held, ready or dead.
func (b *bench) fill() {
	b.t.Helper()
	b.push("dead", "nacked", "held")
	c := b.claim(b.Claim, time.Minute)
	b.all(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: c.Deliveries[0].Lease()}}))
	b.all(b.Nack(b.ctx, []backend.Return{{Lease: c.Deliveries[1].Lease(), Delay: time.Hour}}))
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "later", Delay: time.Hour, UniqueFor: time.Hour}}))
}

func (b *bench) checkKeys(all []string) {
	b.t.Helper()
	for _, k := range all {
		if !strings.HasPrefix(k, b.prefix) {
			b.t.Errorf("key %q does not begin with %q", k, b.prefix)
		}
	}
	// due, messages, leases, held, gens, dead, graves, seq, unique and trigger.
	if len(all) != 10 || !slices.Contains(all, b.key("trigger")) {
		b.t.Errorf("%d keys: %q", len(all), all)
	}
}

func TestQueuesAreIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := store.New(store.Config{Client: b.raw, Prefix: "test"}, t.Name()+":", nil)
	elsewhere := store.New(store.Config{Client: b.raw, Prefix: "test:"}, t.Name(), nil)
	b.push("a")
	for _, s := range []*store.Store{other, elsewhere} {
		b.nothing(s.Claim)
		b.want(s.Cancel(b.ctx, []string{"a"}), backend.ErrNotFound)
	}
	b.ack(b.next(b.Claim, time.Minute, "a"))
	b.empty()
}

func TestValidPrefix(t *testing.T) {
	t.Parallel()
	for prefix, ok := range map[string]bool{
		"delayq": true, "a:b": true, strings.Repeat("p", 64): true,
		"": false, "{a}": false, "a{": false, "a}": false, "\x00": false, strings.Repeat("p", 65): false,
	} {
		if err := store.ValidPrefix(prefix); (err == nil) != ok {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}
