package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 13: the accounting stays right when calls are cancelled.
var chaosChecks = []Check{
	{
		Name: "random-cancellations", Invariant: 13, needs: []backend.Feature{backend.SingleCopy},
		Rule: "After 10,000 calls whose contexts end at random moments, each message is in exactly one state: scheduled, leased, done, dead or cancelled.",
		run:  randomCancellations,
	},
}

func randomCancellations(t *testRun) {
	const workers, rounds = 8, 500 // about 3 calls a round
	t.record()
	lease := 2 * t.Tick // short, since its worker may not settle
	t.all(spread(workers, func(i int) error {
		dice := rand.New(rand.NewPCG(uint64(i), 13))
		for range rounds {
			if err := errors.Join(t.pushOne(dice), t.takeSome(dice, lease), t.look(dice)); err != nil {
				return err
			}
		}
		return nil
	})...)
	t.outlast(lease)
	t.drain()
	if t.has(backend.Redriving) {
		for ls := t.letters(); len(ls) > 0; ls = t.letters() {
			ids := each(ls, func(l backend.DeadLetter) string { return l.ID })
			t.must(errors.Join(t.q.DeleteDead(t.ctx, ids)...), "DeleteDead")
			t.drain()
		}
	}
	rules := []string{"lost", "duplicated", "linearizable"}
	if t.has(backend.Cancelling) && !t.has(backend.CancelNotFound) {
		rules = rules[:2] // a message can be cancelled before its push
	}
	t.judged(rules...)
	t.empty()
}

// brokenOff makes a call under a context that ends before, during or after it. It returns an error
// that such a call must not return.
func (t *testRun) brokenOff(dice *rand.Rand, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	if dice.IntN(4) == 0 {
		cancel()
	} else {
		moment := time.AfterFunc(time.Duration(dice.IntN(300))*time.Microsecond, cancel)
		defer moment.Stop()
	}
	err := call(ctx)
	for _, expected := range []error{nil, context.Canceled, backend.ErrInFlight, backend.ErrNotFound, backend.ErrLeaseLost} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return fmt.Errorf("a call that was broken off returned %w", err)
}

func (t *testRun) pushOne(dice *rand.Rand) error {
	m := t.after(0)
	t.expect(m)
	err := t.brokenOff(dice, func(ctx context.Context) error { return outcome(t.q.Schedule(ctx, []backend.Message{m})) })
	if err == nil && t.has(backend.Cancelling) && dice.IntN(4) == 0 {
		err = t.brokenOff(dice, func(ctx context.Context) error { return outcome(t.q.Cancel(ctx, []string{m.ID})) })
	}
	return err
}

// takeSome receives messages, and settles most of them.
func (t *testRun) takeSome(dice *rand.Rand, lease time.Duration) error {
	var ds []backend.Delivery
	err := t.brokenOff(dice, func(ctx context.Context) (err error) {
		ds, err = t.q.Receive(ctx, 1+dice.IntN(3), lease)
		return err
	})
	for _, d := range ds {
		what := dice.IntN(5)
		if !t.has(backend.Redriving) && what == 3 {
			what = 0 // a dead letter could not be deleted in the end
		}
		err = errors.Join(err, t.taken(d), t.brokenOff(dice, func(ctx context.Context) error {
			switch what {
			case 0, 1:
				return outcome(t.q.Ack(ctx, []backend.Lease{d.Lease()}))
			case 2:
				return outcome(t.q.Nack(ctx, []backend.Return{{Lease: d.Lease()}}))
			case 3:
				return outcome(t.q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: "of the check"}}))
			default:
				return nil // the lease ends
			}
		}))
	}
	return err
}

// look makes a call that changes nothing in one round of two. Broken off, it must not spoil later
// calls.
func (t *testRun) look(dice *rand.Rand) error {
	what := dice.IntN(6)
	return t.brokenOff(dice, func(ctx context.Context) (err error) {
		switch {
		case what == 0 && t.has(backend.Counting):
			_, err = t.q.Stats(ctx)
		case what == 1 && t.has(backend.Peeking):
			_, _, err = t.q.Peek(ctx, "", 10)
		case what == 2 && t.has(backend.Redriving):
			_, _, err = t.q.ListDead(ctx, "", 10)
		}
		return err
	})
}

// drain receives and acknowledges the remaining messages, until Stats twice counts none: a call that
// was broken off may still be carried out. A store that does not count is done when it hands out none
// for long.
func (t *testRun) drain() {
	quiet := max(t.Quiet, 20*time.Millisecond)
	counts := t.has(backend.CountingScheduled)
	for silent, none := 0, 0; none < 2 && (counts || silent <= 20); silent++ {
		ctx, cancel := context.WithTimeout(t.ctx, quiet)
		ds, err := t.q.Receive(ctx, 100, t.lease())
		cancel()
		if err == nil {
			silent, none = 0, 0
			t.ack(ds...)
			continue
		}
		t.want(err, context.DeadlineExceeded, "draining")
		if counts {
			quiet = min(2*quiet, time.Second) // a busy server may take that long for a look
			if s := t.stats(); s.Scheduled+s.Ready+s.InFlight == 0 {
				none++
			} else {
				none = 0
			}
		}
	}
}
