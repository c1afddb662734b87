package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend(redisson.Format(redisson.Both))
	q := p.openOn(b)
	p.push(q, 0, "dead", "held")
	ds := p.take(q, 2, time.Minute)
	must(t, q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: ds[0].Lease()}})...)
	p.push(q, time.Hour, "ours")
	p.offer(javaMember(redisson.V2, "new"), time.Now().Add(time.Hour))
	p.offer(javaMember(redisson.V1, "old"), time.Now().Add(time.Hour))
	must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: 1e15, Member: "garbage"}).Err())
	must(t, q.Close())
	await(t, "the handle to unsubscribe", func() bool { return p.raw.PubSubNumSub(p.ctx, p.channel()).Val()[p.channel()] == 0 })
	p.subscribe()
	must(t, p.raw.RPush(p.ctx, p.name, "for Java").Err())
	r, err := b.Inspect(p.ctx, p.name)
	must(t, err)
	if r.Waiting != 5 || r.Indexed != 3 || r.Handed != 1 || r.Leased != 1 || r.Dead != 1 || r.Quarantined != 0 || r.Unreadable != 1 || r.Subscribers != 1 {
		t.Errorf("report %+v", r)
	}
	// The member that represents the lease has the layout Both.
	if want := map[redisson.MemberFormat]int{redisson.V1: 1, redisson.V2: 1, redisson.Both: 2}; !maps.Equal(r.Formats, want) {
		t.Errorf("formats %v, want %v", r.Formats, want)
	}
	k := r.Keys
	if k.Destination != p.name || k.Timeouts != p.times() || k.Index != p.index() || k.Channel != p.channel() || len(k.Own) != 9 {
		t.Errorf("keys %+v", k)
	}
	for _, key := range p.keys() {
		if key != k.Destination && key != k.Timeouts && key != k.Index && !slices.Contains(k.Own, key) {
			t.Errorf("the report does not know the key %s", key)
		}
	}
}

// Pending lists scheduled messages, a page at a time: with ids that Cancel takes, and without the
// members that represent leases.
func TestPending(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend(redisson.WithCodec(redisson.Kryo5String))
	q := p.openOn(b)
	p.push(q, 0, "held", "back")
	ds := p.take(q, 2, time.Minute)
	must(t, q.Nack(p.ctx, []backend.Return{{Lease: ds[1].Lease(), Delay: time.Hour}})...)
	p.push(q, time.Hour+time.Second, "a", "b")
	p.offer(javaMember(redisson.V2, "\x02\x02"), time.Now().Add(2*time.Hour)) // an Integer
	var got []string
	var ids []string
	pending := func(ctx context.Context, cursor string, limit int) ([]redisson.Pending, string, error) {
		return b.Pending(ctx, p.name, cursor, limit)
	}
	for _, m := range slices.Concat(redistest.Pages(p.ctx, t, pending, 2)...) {
		got = append(got, fmt.Sprint(string(m.Body), " ", m.Attempts, " ", m.Format, " ", errors.Is(m.Err, redisson.ErrUnreadable)))
		ids = append(ids, m.ID)
	}
	if want := []string{"back 1 Both false", "a 0 Both false", "b 0 Both false", " 0 V2 true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if ids[0] != ds[1].ID {
		t.Errorf("the message that came back is called %s, want %s", ids[0], ds[1].ID)
	}
	must(t, q.Cancel(p.ctx, ids)...)
	must(t, q.Ack(p.ctx, leases(ds[:1]))...)
	p.empty()
}
