package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// TestKeyOfAReplacedMessageIsDeleted has an operator delete one of the keys that say where a message
// is, while it is replaced in flight. The new message comes when the worker settles, or when the lease
// ends. Only without the ends of leases does it take the worker.
func TestKeyOfAReplacedMessageIsDeleted(t *testing.T) {
	t.Parallel()
	settles := map[string]func(b *bench, l backend.Lease) []error{
		"no call": func(*bench, backend.Lease) []error { return nil },
		"ack":     func(b *bench, l backend.Lease) []error { return b.Ack(b.ctx, []backend.Lease{l}) },
		"nack":    func(b *bench, l backend.Lease) []error { return b.Nack(b.ctx, []backend.Return{{Lease: l}}) },
		"dead": func(b *bench, l backend.Lease) []error {
			return b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: l, Reason: "test"}})
		},
		"extend": func(b *bench, l backend.Lease) []error {
			_, errs := b.Extend(b.ctx, []backend.Lease{l}, time.Millisecond)
			return errs
		},
	}
	for _, tt := range []struct {
		deleted string
		without []string // calls after which the message does not come
		lost    bool     // the lease
	}{
		{"leases", []string{"no call"}, false},
		{"gens", nil, false},
		{"held", nil, true},
		{"ready", nil, false},
		{"seq", nil, false},
	} {
		for name, settle := range settles {
			if slices.Contains(tt.without, name) {
				continue
			}
			t.Run(tt.deleted+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.push("a")
				d := b.next(b.Claim, time.Minute, "a")
				b.all(b.Nack(b.ctx, []backend.Return{{Lease: d.Lease()}})) // it has come back before
				lease := time.Minute
				if name == "no call" || tt.lost { // its end is awaited
					lease = time.Second
				}
				d = b.next(b.Claim, lease, "a")
				b.all(b.Schedule(b.ctx, superseding("second")))
				must(t, b.raw.Del(b.ctx, b.key(tt.deleted)).Err())
				if errs := settle(b, d.Lease()); tt.lost && name != "no call" {
					b.want(errs, backend.ErrLeaseLost)
				} else {
					b.all(errs)
				}
				var got []backend.Delivery
				await(t, "the new message", func() bool {
					c, err := b.Claim(b.ctx, 10, time.Minute, redistest.Name())
					must(t, err)
					got = c.Deliveries
					return len(got) > 0
				})
				if len(got) != 1 || string(got[0].Body) != "second" {
					t.Fatalf("got %+v, want the new message", got)
				}
				b.all(b.Ack(b.ctx, []backend.Lease{got[0].Lease()}))
				b.push("a") // the id is free
			})
		}
	}
}
