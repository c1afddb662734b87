// Package lease keeps the state of a delivery's lease: when it ends, by the store's clock and by
// the queue's own, and which calls settle it.
package lease

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// A Lease is the lease of one delivery. Its methods are safe for concurrent use.
type Lease struct {
	token  backend.Lease
	length time.Duration // as the queue asks for it
	taken  time.Time     // when it began by the queue's own clock, with the monotonic reading if that has one
	ahead  int64         // the store's clock less the queue's own, in nanoseconds, when the lease began
	until  atomic.Int64  // the end by the store's clock, nanoseconds since 1970
	kept   atomic.Int64  // the end by the queue's own clock, nanoseconds after taken, for when the store cannot be asked
	asked  atomic.Int64  // the end that the latest Extend asked for, nanoseconds after taken
	got    atomic.Int64  // the end that the latest Extend got, nanoseconds after taken

	renewed   bool        // by a consumer
	abandoned atomic.Bool // by a consumer whose handler ignores its timeout
	settle    settlement
}

// nothing is an end that no Extend asked for.
const nothing = math.MinInt64

// Take begins a lease that the store granted at now, for a length that ends at until by the
// store's clock. It is called once, before any other method.
func (l *Lease) Take(token backend.Lease, length time.Duration, now, until time.Time) {
	l.token, l.length, l.taken = token, length, now
	l.Renew(until, now.Add(length))
	l.asked.Store(nothing)
	l.got.Store(nothing)
	l.ahead = until.Add(-length).UnixNano() - now.UnixNano()
}

// Token names the lease to the store.
func (l *Lease) Token() backend.Lease { return l.token }

// Until returns when the lease ends by the store's clock.
func (l *Lease) Until() time.Time { return time.Unix(0, l.until.Load()).UTC() }

// Age returns how long before now the lease began. It is negative where a clock without a monotonic
// reading was set back.
func (l *Lease) Age(now time.Time) time.Duration { return now.Sub(l.taken) }

// Late returns how long before now, a time of the queue's own clock, due was by the store's clock.
// The two clocks may differ. It is never negative.
func (l *Lease) Late(due, now time.Time) time.Duration {
	return max(time.Duration(now.UnixNano()+l.ahead-due.UnixNano()), 0)
}

// Expired reports whether the lease has ended by the queue's own clock.
func (l *Lease) Expired(now time.Time) bool { return int64(l.Age(now)) >= l.kept.Load() }

// Left returns how long after now the lease ends by the queue's own clock, less than 0 once it has.
func (l *Lease) Left(now time.Time) time.Duration {
	return time.Duration(l.kept.Load()) - l.Age(now)
}

// Renewing says that a consumer renews the lease from now on. It is called before a handler has
// the delivery.
func (l *Lease) Renewing() { l.renewed = true }

// Abandon has each later Extend return [backend.ErrLeaseLost]: the message is for another worker.
func (l *Lease) Abandon() { l.abandoned.Store(true) }

// Renewable reports whether a renewal to kept is of use: the lease is neither settled, being
// settled nor lost, and no Extend has asked for a later end and got it.
func (l *Lease) Renewable(kept time.Time) bool {
	to := int64(l.Age(kept))
	return !l.Ended() && (l.asked.Load() < to || l.kept.Load() < to)
}

// Renew sets the end of the lease by both clocks.
func (l *Lease) Renew(until, kept time.Time) {
	l.until.Store(until.UnixNano())
	l.kept.Store(int64(l.Age(kept)))
}

// Overtaken returns the end that an Extend asked for while a renewal to kept was on its way, if it
// is later: the renewal may have undone it.
func (l *Lease) Overtaken(kept time.Time) (asked time.Time, ok bool) {
	asked = l.taken.Add(time.Duration(l.asked.Load()))
	return asked, asked.After(kept)
}

// Tokens returns the tokens of leases.
func Tokens(ls []*Lease) []backend.Lease {
	tokens := make([]backend.Lease, len(ls))
	for i, l := range ls {
		tokens[i] = l.token
	}
	return tokens
}

// An Extender is the part of a [backend.Queue] that extends leases.
type Extender interface {
	Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error)
}

// Extend makes leases end that long from now and returns an outcome for each. Where a consumer
// renews one of them, none becomes shorter than the queue's leases: it could end before the next
// renewal, while its handler runs. It does not ask the store for one that is abandoned.
func Extend(ctx context.Context, s Extender, ls []*Lease, length time.Duration, now time.Time) []error {
	outcomes := make([]error, len(ls))
	kept, at := make([]*Lease, 0, len(ls)), make([]int, 0, len(ls))
	for i, l := range ls {
		if l.abandoned.Load() {
			outcomes[i] = backend.ErrLeaseLost
		} else {
			kept, at = append(kept, l), append(at, i)
		}
	}
	if len(kept) > 0 {
		for i, err := range extend(ctx, s, kept, length, now) {
			if err == nil && kept[i].abandoned.Load() { // meanwhile
				err = backend.ErrLeaseLost
			}
			outcomes[at[i]] = err
		}
	}
	for i, l := range ls { // may wait
		outcomes[i] = l.settle.outcome(ctx, outcomes[i])
	}
	return outcomes
}

func extend(ctx context.Context, s Extender, ls []*Lease, length time.Duration, now time.Time) []error {
	for _, l := range ls {
		if l.renewed {
			length = max(length, l.length)
		}
	}
	kept := now.Add(length)
	for _, l := range ls {
		l.asked.Store(int64(l.Age(kept))) // before the call: a renewal may undo it
	}
	ends, errs := s.Extend(ctx, Tokens(ls), length)
	outcomes := make([]error, len(ls))
	copy(outcomes, errs)
	for i, l := range ls {
		if outcomes[i] == nil {
			l.Renew(ends[i], kept)
			l.extended(kept)
		} else {
			l.notExtended(kept, outcomes[i])
		}
	}
	return outcomes
}

// extended records that an Extend to kept has succeeded. A later one that failed meanwhile may have
// put back the end before.
func (l *Lease) extended(kept time.Time) {
	to := int64(l.Age(kept))
	l.asked.CompareAndSwap(l.got.Swap(to), to)
}

// notExtended takes back an Extend to kept that has failed. What an earlier one got stands, unless
// the lease may have become shorter.
func (l *Lease) notExtended(kept time.Time, err error) {
	to, got := int64(l.Age(kept)), l.got.Load()
	if got > to && errors.Is(err, backend.ErrOutcomeUnknown) {
		l.got.CompareAndSwap(got, nothing)
		got = nothing
	}
	l.asked.CompareAndSwap(to, got)
}

// Settle makes a call that settles the lease. It returns ErrSettled, and does not call, when the
// lease is settled already. While the call is under way the lease is not renewed.
func (l *Lease) Settle(ctx context.Context, call func() error) error {
	if !l.settle.begin() {
		return ErrSettled
	}
	err := call()
	l.settle.end(err)
	return l.settle.outcome(ctx, err)
}

// SettleInTx makes a call that settles the lease when a transaction of the caller commits. From then
// on the lease is not renewed: a renewal would wait for that transaction, and others with it. Nobody
// tells whether it commits, so a later call that settles the lease is made, and where the store then
// returns ErrLeaseLost its outcome is ErrSettled. A second one in a transaction gets the store's own
// outcome: the first may have been rolled back.
func (l *Lease) SettleInTx(call func() error) error {
	if !l.settle.begin() {
		return ErrSettled
	}
	err := call()
	l.settle.endInTx(err)
	return err
}

// InTransaction reports whether the lease is settled if a transaction commits.
func (l *Lease) InTransaction() bool { return l.settle.inTransaction() }

// Settle makes one call that settles the leases that are not settled yet, and returns an outcome
// for each: nil, ErrSettled or the call's error.
func Settle(ctx context.Context, ls []*Lease, call func([]backend.Lease) []error) []error {
	outcomes := make([]error, len(ls))
	open, at := make([]*Lease, 0, len(ls)), make([]int, 0, len(ls))
	for i, l := range ls {
		if l.settle.begin() {
			open, at = append(open, l), append(at, i)
		} else {
			outcomes[i] = ErrSettled
		}
	}
	if len(open) == 0 {
		return outcomes
	}
	errs := make([]error, len(open))
	copy(errs, call(Tokens(open))) // nil when all succeeded
	for i, l := range open {
		l.settle.end(errs[i])
	}
	for i, l := range open {
		outcomes[at[i]] = l.settle.outcome(ctx, errs[i])
	}
	return outcomes
}

// Ended reports whether the lease is settled, in a transaction too, being settled, or lost.
func (l *Lease) Ended() bool { return l.settle.ended() }
