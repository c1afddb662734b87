package store_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// stale checks that a lease that is over settles nothing.
func (b *bench) stale(l backend.Lease) {
	b.t.Helper()
	b.want(b.Ack(b.ctx, []backend.Lease{l}), backend.ErrLeaseLost)
	b.want(b.Nack(b.ctx, []backend.Return{{Lease: l}}), backend.ErrLeaseLost)
	b.want(b.Nack(b.ctx, []backend.Return{{Lease: l, Untouched: true}}), backend.ErrLeaseLost)
	b.want(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: l}}), backend.ErrLeaseLost)
	_, errs := b.Extend(b.ctx, []backend.Lease{l}, time.Minute)
	b.want(errs, backend.ErrLeaseLost)
}

func TestTokenOfAnEarlierMessageWithTheID(t *testing.T) {
	for name, end := range map[string]func(*bench, backend.Lease){
		"acked": func(b *bench, l backend.Lease) { b.all(b.Ack(b.ctx, []backend.Lease{l})) },
		"cancelled": func(b *bench, l backend.Lease) {
			b.all(b.Nack(b.ctx, []backend.Return{{Lease: l}}))
			b.all(b.Cancel(b.ctx, []string{l.ID}))
		},
		"deleted dead": func(b *bench, l backend.Lease) {
			b.all(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: l}}))
			b.all(b.DeleteDead(b.ctx, []string{l.ID}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var before []backend.Lease
			for range 50 { // fast enough that lives share a millisecond
				b.push("a")
				d := b.next(b.Claim, time.Minute, "a")
				for _, l := range before {
					b.stale(l)
				}
				end(b, d.Lease())
				b.empty()
				before = append(before[max(0, len(before)-3):], d.Lease())
			}
		})
	}
}

func TestTokenAfterRedrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	first := b.next(b.Claim, time.Minute, "a")
	b.all(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: first.Lease(), Reason: "why"}}))
	b.stale(first.Lease())
	b.all(b.Redrive(b.ctx, []string{"a"}))
	second := b.next(b.Claim, time.Minute, "a")
	if second.Attempt != 1 || second.Token == first.Token {
		t.Errorf("after the redrive: attempt %d, token %v; before: token %v", second.Attempt, second.Token, first.Token)
	}
	b.stale(first.Lease())
	b.ack(second)
	b.empty()
}

func TestTokenAfterItsLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, way := range ways(b.Store) {
		b.push("a")
		first := b.next(way, 20*time.Millisecond, "a")
		second := b.next(way, time.Minute, "a")
		if second.Attempt != 2 || second.Due != first.Due {
			t.Errorf("second attempt: %+v; first: %+v", second, first)
		}
		b.stale(first.Lease())
		b.ack(second)
		b.empty()
	}
}
