package redisson_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// A claim whose reply is lost is repeated, and returns what its first try has leased in the order
// of the queue.
func TestClaimLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]redisson.Codec{"shared": redisson.Bytes, "envelopes": redisson.Envelope} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			client := p.server.Client(t)
			q := p.store(p.backendOn(client, redisson.WithCodec(codec)))
			const n = 50
			at := time.Now().Add(-time.Minute)
			for i := range n { // the last is due first
				must(t, q.Schedule(p.ctx, []backend.Message{{ID: lettered(codec, i), Body: []byte{byte(i)}, Due: at.Add(-time.Duration(i/2) * time.Second)}})...)
			}
			c, err := q.Claim(p.ctx, 1, time.Minute, redistest.Name()) // the script is there now
			if err != nil || len(c.Deliveries) != 1 || c.Deliveries[0].Body[0] != n-2 {
				t.Fatalf("got %v, %v", c.Deliveries, err)
			}
			client.AddHook(redistest.LostReply(func() {}).Hook())
			// a claim stops when it takes long
			if c, err = q.Claim(p.ctx, n, time.Minute, redistest.Name()); err != nil || len(c.Deliveries) < 3 {
				t.Fatalf("got %d messages, %v", len(c.Deliveries), err)
			}
			for i, d := range c.Deliveries {
				if want := byte(n - 2 - (i+1)/2*2 + (i+1)%2); d.Body[0] != want {
					t.Fatalf("message %d came in place %d, want %d", d.Body[0], i, want)
				}
			}
		})
	}
}

// A message that a first try moved, and a worker took since, is neither in flight nor gone for a
// caller who would believe that nothing was moved.
func TestRescheduleLosesItsReplyAndTheMessage(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprint("done ", done), func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			workers, client := p.open(), p.server.Client(t)
			q := p.store(p.backendOn(client))
			far := []backend.Message{{Body: []byte("far"), Delay: time.Hour}}
			must(t, q.Schedule(p.ctx, far)...)
			must(t, q.Reschedule(p.ctx, []backend.Move{{ID: far[0].ID, Delay: time.Hour}})...) // the script is there now
			client.AddHook(redistest.LostReply(func() {
				ds := p.take(workers, 1, time.Minute)
				if done {
					must(t, workers.Ack(p.ctx, []backend.Lease{ds[0].Lease()})...)
				}
			}).Hook())
			wants(t, q.Reschedule(p.ctx, []backend.Move{{ID: far[0].ID}}), backend.ErrOutcomeUnknown)
		})
	}
}

// lettered are ids that sort neither as they are pushed nor as they are due.
func lettered(c redisson.Codec, i int) string {
	if c != redisson.Envelope {
		return ""
	}
	return string(rune('a'+i*7%26)) + strconv.Itoa(i)
}
