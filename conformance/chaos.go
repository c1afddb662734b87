package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

// fate is what the suite knows of a message: what it was told happened, and what may have.
type fate struct {
	pushed, settled       bool // told: Schedule, or a settling, returned nil
	maybePushed, maybeEnd bool // the call was broken off
	drained               int  // hand-outs in the final drain
}

// ledger is shared by the workers of the check.
type ledger struct {
	*trial
	mu    sync.Mutex
	fates map[string]*fate
}

func (l *ledger) of(id string, note func(*fate)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fates[id] == nil {
		l.fates[id] = new(fate)
	}
	note(l.fates[id])
}

func randomCancellations(t *trial) {
	const workers, rounds = 8, 500 // about 2.5 calls a round
	l := &ledger{trial: t, fates: make(map[string]*fate)}
	t.all(spread(workers, func(i int) error { return l.breakOff(rand.New(rand.NewPCG(uint64(i), 13)), rounds) })...)
	t.outlast(l.doomed())
	l.drain()
	l.collectDead()
	for id, f := range l.fates {
		l.judge(id, *f)
	}
	t.empty()
}

// breakOff makes calls and ends their contexts at random moments.
func (l *ledger) breakOff(r *rand.Rand, rounds int) error {
	for range rounds {
		if err := errors.Join(l.pushOne(r), l.takeSome(r)); err != nil {
			return err
		}
	}
	return nil
}

// broken runs a call under a context that ends before, during or after it.
func (l *ledger) broken(r *rand.Rand, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	if r.IntN(4) == 0 {
		cancel()
	} else {
		moment := time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
		defer moment.Stop()
	}
	return call(ctx)
}

func (l *ledger) pushOne(r *rand.Rand) error {
	m := l.after(0)
	l.expect(m)
	err := l.broken(r, func(ctx context.Context) error { return outcome(l.q.Schedule(ctx, []backend.Message{m})) })
	l.of(m.ID, func(f *fate) { f.pushed, f.maybePushed = err == nil, err != nil })
	if l.has(backend.Cancelling) && r.IntN(4) == 0 {
		err := l.broken(r, func(ctx context.Context) error { return outcome(l.q.Cancel(ctx, []string{m.ID})) })
		l.ended(m.ID, err)
	}
	return l.known(err)
}

// ended notes the outcome of a settling.
func (l *ledger) ended(id string, err error) {
	l.of(id, func(f *fate) {
		switch {
		case err == nil:
			f.settled = true
		case errors.Is(err, context.Canceled):
			f.maybeEnd = true
		}
	})
}

// known passes on an error that a call which is broken off cannot have.
func (l *ledger) known(err error) error {
	for _, expected := range []error{nil, context.Canceled, backend.ErrInFlight, backend.ErrNotFound, backend.ErrLeaseLost} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return fmt.Errorf("a call that was broken off answered %w", err)
}

func (l *ledger) takeSome(r *rand.Rand) error {
	var ds []backend.Delivery
	err := l.broken(r, func(ctx context.Context) (err error) {
		ds, err = l.q.Receive(ctx, 1+r.IntN(3), l.doomed())
		return err
	})
	for _, d := range ds {
		if err := l.taken(d); err != nil {
			return err
		}
		if err := l.settleOne(r, d); err != nil {
			return err
		}
	}
	return l.known(err)
}

func (l *ledger) settleOne(r *rand.Rand, d backend.Delivery) error {
	what := r.IntN(5)
	if !l.has(backend.Redriving) && what == 3 {
		what = 0 // nobody could delete the dead letter in the end
	}
	err := l.broken(r, func(ctx context.Context) error {
		switch what {
		case 0, 1:
			return outcome(l.q.Ack(ctx, []backend.Lease{d.Lease()}))
		case 2:
			return outcome(l.q.Nack(ctx, []backend.Return{{Lease: d.Lease()}}))
		case 3:
			return outcome(l.q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: "of the check"}}))
		default:
			return nil // dies without a word
		}
	})
	if what < 2 || what == 3 {
		l.ended(d.ID, err)
	}
	return l.known(err)
}

// doomed is the length of the leases, whose holders may die.
func (l *ledger) doomed() time.Duration { return 2 * l.Tick }

// drain hands out and acknowledges what is left, until the store says that there is nothing, or
// for long nothing comes.
func (l *ledger) drain() {
	quiet := max(l.Quiet, 20*time.Millisecond)
	for silent := 0; ; silent++ {
		ctx, cancel := context.WithTimeout(l.ctx, quiet)
		ds, err := l.q.Receive(ctx, 100, l.lease())
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			if l.drained() || silent == 20 {
				return
			}
			continue
		}
		silent = 0
		l.must(err, "draining")
		for _, d := range ds {
			l.of(d.ID, func(f *fate) { f.drained++ })
		}
		l.ack(ds...)
	}
}

func (l *ledger) drained() bool {
	if !l.has(backend.Counting) {
		return false
	}
	s := l.stats()
	return s.Scheduled+s.Ready+s.InFlight == 0
}

// buried finds the dead letters, and deletes them.
func (l *ledger) collectDead() {
	if !l.has(backend.Redriving) {
		return
	}
	for ls := l.letters(); len(ls) > 0; ls = l.letters() {
		for _, d := range ls {
			l.of(d.ID, func(f *fate) {
				if !f.settled && !f.maybeEnd {
					f.drained++
				}
			})
			l.must(outcome(l.q.DeleteDead(l.ctx, []string{d.ID})), "DeleteDead")
		}
	}
}

func (l *ledger) judge(id string, f fate) {
	var wrong []string
	if f.drained > 1 {
		wrong = append(wrong, fmt.Sprintf("it came %d times in the drain", f.drained))
	}
	if f.settled && f.drained > 0 {
		wrong = append(wrong, "it was settled and came again")
	}
	if f.pushed && !f.settled && !f.maybeEnd && f.drained == 0 {
		wrong = append(wrong, "it was pushed, not settled, and is gone")
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		l.fail("message %s: %v", id, wrong)
	}
}
